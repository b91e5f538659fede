#ifndef SLIPSTREAM_TESTS_SERVER_CORE_COORDINATOR_COORDINATOR_FIXTURE_H_
#define SLIPSTREAM_TESTS_SERVER_CORE_COORDINATOR_COORDINATOR_FIXTURE_H_

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/log_line.h"
#include "server/core/coordinator/coordinator.h"

namespace slipstream {

using PreparationState = Preparation::State;
using WorkState = WorkAnswer::State;

inline constexpr uint64_t kRun = 5;
inline const Initialization::Data kData{100, 42, {}};
inline const std::string kHash(64, 'a');

inline RunSpec Spec(ConsistencySpec::Policy policy = ConsistencySpec::Policy::kSoftsync) {
  RunSpec spec;
  spec.consistency.policy = policy;
  spec.cluster.servers = {"a:1", "b:2"};
  spec.cluster.workers = 2;
  spec.cluster.lease = absl::Seconds(5);
  spec.cluster.start_timeout = absl::Seconds(60);
  spec.training.batch_size = 30;  // 4 mini-batches an epoch.
  spec.training.epochs = 2;
  return spec;
}

inline TensorLayout Layout() {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("weights", {10, 20}).ok());
  return layout;
}

/// A coordinator with scripted servers and a clock that only the test moves.
class CoordinatorTest : public testing::Test {
 protected:
  void Use(const RunSpec& spec) { coordinator_.emplace(kRun, spec, now_); }

  Coordinator& coordinator() { return *coordinator_; }

  /// Both servers report, with the newest orders seen.
  void Sync() {
    for (uint32_t shard = 0; shard < 2; ++shard) SyncOne(shard);
  }

  void SyncOne(uint32_t shard) {
    ServerReport report;
    report.shard = ShardId{shard};
    report.instance = instance_[shard];
    report.address = "host:" + std::to_string(shard);
    report.orders_seen = coordinator().orders().number;
    report.initialized = initialized_;
    report.drained = drained_;
    report.batches_of_rounds = batches_;
    report.pushed = pushed_;
    ASSERT_TRUE(coordinator().OnServer(report, now_).ok());
  }

  Identity Join() {
    const auto identity = coordinator().OnRegister({.host = "host"}, now_);
    EXPECT_TRUE(identity.ok()) << identity.status();
    return *identity;
  }

  PreparationState Prepare(const Identity& worker) {
    const auto answer = coordinator().OnPrepareModel(worker, Layout(), kData, now_);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer->state;
  }

  /// Goes to the beginning of training with two workers, the first of which has initialised the
  /// model.
  void Train(const RunSpec& spec) {
    Use(spec);
    Sync();
    ada_ = Join();
    bob_ = Join();
    ASSERT_EQ(Prepare(ada_), PreparationState::kGranted);
    ASSERT_EQ(Prepare(bob_), PreparationState::kWait);
    initialized_ = true;
    Sync();
    ASSERT_TRUE(coordinator().OnFinishInitialization(ada_, 1, now_).ok());
    ASSERT_EQ(coordinator().phase(), Phase::kTraining);
  }

  /// Advances the time in steps of one second. At each step the workers in `alive` send a heartbeat
  /// and the servers report.
  void Pass(absl::Duration duration, std::vector<Identity> alive) {
    for (const absl::Time end = now_ + duration; now_ < end;) {
      now_ += absl::Seconds(1);
      Sync();
      for (const Identity& worker : alive) {
        ASSERT_TRUE(coordinator().OnHeartbeat(worker, {}, now_).ok());
      }
      coordinator().Tick(now_);
    }
  }

  /// Goes to the point where Ada is to measure the final weights.
  void Evaluate() {
    RunSpec spec = Spec();
    spec.evaluation.every_epochs = 0;
    Train(spec);
    WorkAllAs(ada_);
    drained_ = true;
    Sync();
    ASSERT_EQ(coordinator().phase(), Phase::kEvaluating);
    ASSERT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value());
  }

  /// Returns the number of notes since the last call that contain this text.
  int CountNotes(const std::string& text) {
    int count = 0;
    for (const CoordinatorNotes::Note& note : coordinator().TakeNotes()) {
      if (TextOf(note.line).find(text) != std::string::npos) ++count;
    }
    return count;
  }

  WorkState Ask(const Identity& worker) {
    EXPECT_TRUE(coordinator().OnHeartbeat(worker, {}, now_).ok());
    const auto work = coordinator().AskWork(worker, {});
    EXPECT_TRUE(work.ok()) << work.status();
    last_unit_ = work->unit;
    return work->state;
  }

  void WorkAllAs(const Identity& worker) {
    while (Ask(worker) == WorkState::kUnit) {
      const UnitReport done{last_unit_.number, last_unit_.batches};
      ASSERT_TRUE(coordinator().OnHeartbeat(worker, {&done, 1}, now_).ok());
    }
  }

  absl::Time now_ = absl::UnixEpoch();
  std::optional<Coordinator> coordinator_;
  uint64_t instance_[2] = {11, 12};
  bool initialized_ = false;
  bool drained_ = false;
  uint64_t batches_ = 0;
  std::vector<ServerReport::Pushed> pushed_;
  Identity ada_;
  Identity bob_;
  WorkLedger::Unit last_unit_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_CORE_COORDINATOR_COORDINATOR_FIXTURE_H_
