#ifndef SLIPSTREAM_TESTS_SERVER_CORE_COORDINATOR_GENERATIONS_FIXTURE_H_
#define SLIPSTREAM_TESTS_SERVER_CORE_COORDINATOR_GENERATIONS_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/server/core/coordinator/coordinator_fixture.h"

namespace slipstream {

inline SavedVersion Saved(uint64_t version, uint64_t generation = 0, uint32_t stage = 0) {
  return {.generation = Generation{generation}, .version = Version{version}, .stage = stage};
}

/// A coordinator with two shards that make checkpoints, each with a report of its own.
class CoordinatorGenerationsTest : public CoordinatorTest {
 protected:
  using Policy = ConsistencySpec::Policy;

  static RunSpec Durable(Policy policy = Policy::kSoftsync) {
    RunSpec spec = Spec(policy);
    spec.evaluation.every_epochs = 0;
    spec.durability.level = DurabilitySpec::Level::kCheckpoint;
    spec.durability.interval = absl::Seconds(10);
    return spec;
  }

  /// Goes to the beginning of training, where both shards have saved version 0.
  void TrainDurably(const RunSpec& spec) {
    Train(spec);
    for (uint32_t shard = 0; shard < 2; ++shard) {
      reports_[shard] = {.shard = ShardId{shard},
                         .instance = instance_[shard],
                         .address = "host:" + std::to_string(shard),
                         .initialized = true,
                         .saved = {Saved(0)}};
      Report(shard);
    }
    coordinator().TakeNotes();
  }

  /// The shard reports under the newest orders.
  void Report(uint32_t shard) {
    reports_[shard].orders_seen = coordinator().orders().number;
    Send(shard);
  }

  void Send(uint32_t shard) {
    ++reports_[shard].number;
    const absl::Status taken = coordinator().OnServer(reports_[shard], now_);
    ASSERT_TRUE(taken.ok()) << taken;
  }

  /// Both shards make versions up to this one, and save those of `saved`.
  void Reach(uint64_t version, const std::vector<SavedVersion>& saved = {}) {
    for (uint32_t shard = 0; shard < 2; ++shard) {
      reports_[shard].version = Version{version};
      reports_[shard].saved.insert(reports_[shard].saved.end(), saved.begin(), saved.end());
      Report(shard);
    }
  }

  /// Both shards have published the last version of a stage whose work comes in rounds, and know
  /// that all are to drain.
  void Drain(uint64_t version, const std::vector<SavedVersion>& saved = {}) {
    reports_[0].drained = reports_[1].drained = true;
    Reach(version, saved);
    Report(0);
  }

  /// Another process takes the place of the shard's, later than the takeover time, and says that it
  /// has nothing.
  void Restart(uint32_t shard) {
    now_ += absl::Seconds(6);
    HearWorkers();
    Report(1 - shard);
    BeginProcess(shard);
    Send(shard);
  }

  void HearWorkers() {
    for (const Identity& worker : {ada_, bob_}) {
      ASSERT_TRUE(coordinator().OnHeartbeat(worker, {}, now_).ok());
    }
  }

  /// Time passes, in which both workers live and these shards report.
  void LetPass(absl::Duration duration, const std::vector<uint32_t>& reporting = {0, 1}) {
    for (const absl::Time end = now_ + duration; now_ < end;) {
      now_ += absl::Seconds(1);
      HearWorkers();
      for (const uint32_t shard : reporting) Report(shard);
      coordinator().Tick(now_);
    }
  }

  void BeginProcess(uint32_t shard) {
    const ServerReport before = reports_[shard];
    saved_[shard] = before.saved;
    reports_[shard] = {
        .shard = before.shard, .instance = before.instance + 100, .address = before.address};
  }

  /// The new process of the shard has heard of the run, and names the checkpoints that it has.
  void NameCheckpoints(uint32_t shard) {
    reports_[shard].saved = saved_[shard];
    reports_[shard].knows_saved = true;
    Report(shard);
  }

  /// The shard goes on from the checkpoint that it was ordered to.
  void Follow(uint32_t shard) {
    const ShardReturn order = coordinator().orders().returns.at(shard);
    ASSERT_NE(order.generation, Generation{});
    reports_[shard].initialized = true;
    reports_[shard].drained = false;
    reports_[shard].generation = order.generation;
    reports_[shard].version = order.from.version;
    Report(shard);
  }

  /// Returns the order to return that stands for the shard; generation 0 if there is none.
  ShardReturn OrderOf(uint32_t shard) {
    const std::vector<ShardReturn>& all = coordinator().orders().returns;
    return all.empty() ? ShardReturn() : all.at(shard);
  }

  ServerReport reports_[2];
  std::vector<SavedVersion> saved_[2];
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_CORE_COORDINATOR_GENERATIONS_FIXTURE_H_
