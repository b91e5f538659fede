#ifndef SLIPSTREAM_TESTS_SERVER_AGGREGATOR_AGGREGATOR_FIXTURE_H_
#define SLIPSTREAM_TESTS_SERVER_AGGREGATOR_AGGREGATOR_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/layout/shard_map.h"
#include "server/aggregator/aggregator.h"
#include "server/aggregator/aggregator_pulls.h"
#include "tests/support/specs.h"

namespace slipstream {

inline constexpr uint64_t kRun = 5;
inline constexpr size_t kValues = 4;

inline ReceivedValues Received(const std::vector<float>& values) {
  ReceivedValues::Buffer buffer = ReceivedValues::MakeBuffer(values.size());
  std::ranges::copy(values, buffer.to.begin());
  return std::move(buffer.values);
}

/// A call that keeps its answer for the test.
class RecordingCall final : public WaitingCall {
 public:
  void OnAnswer(Answer answer) override {
    MutexLock lock(mutex_);
    answer_ = std::move(answer);
    answered_.NotifyAll();
  }

  /// Waits for the answer and takes it.
  Answer Await() {
    MutexLock lock(mutex_);
    while (!answer_.has_value()) answered_.Wait(mutex_);
    return *std::exchange(answer_, std::nullopt);
  }

  bool is_answered() {
    MutexLock lock(mutex_);
    return answer_.has_value();
  }

  void OnLagged(const absl::Status& status) override { OnAnswer({.refusal = status}); }

 private:
  Mutex mutex_;
  CondVar answered_;
  std::optional<Answer> answer_ ABSL_GUARDED_BY(mutex_);
};

/// The shard of an aggregator. The test says how it replies.
class ScriptedShard {
 public:
  struct Exchanged {
    PushHeader header;
    std::vector<float> values;
  };
  using Reply = std::function<absl::StatusOr<ExchangeAnswer>(const PushHeader& composite)>;

  /// Without a reply, exchanges last until they are stopped.
  void ReplyBy(Reply reply) {
    MutexLock lock(mutex_);
    reply_ = std::move(reply);
    changed_.NotifyAll();
  }

  /// Waits until so many composites have come, and returns them.
  std::vector<Exchanged> Await(size_t count) {
    MutexLock lock(mutex_);
    while (exchanged_.size() < count) changed_.Wait(mutex_);
    return exchanged_;
  }

  absl::StatusOr<ExchangeAnswer> Exchange(const PushHeader& composite,
                                          std::span<const float> values, std::span<float> weights) {
    Reply reply;
    {
      MutexLock lock(mutex_);
      exchanged_.push_back({composite, {values.begin(), values.end()}});
      changed_.NotifyAll();
      while (!is_stopped_ && reply_ == nullptr) changed_.Wait(mutex_);
      if (is_stopped_) return absl::CancelledError("stopped");
      reply = reply_;
    }
    absl::StatusOr<ExchangeAnswer> answer = reply(composite);
    if (answer.ok() && answer->weights.has_value()) {
      std::ranges::fill(weights, static_cast<float>(Value(answer->weights->version)));
    }
    return answer;
  }

  /// Answers the oldest pull that is not answered yet, or the next one.
  void AnswerPull(absl::StatusOr<WeightsHeader> answer) {
    MutexLock lock(mutex_);
    pull_answers_.push_back(std::move(answer));
    changed_.NotifyAll();
  }

  /// Waits until so many pulls have come, and returns them.
  std::vector<GroupPulls::Asked> AwaitPulls(size_t count) {
    MutexLock lock(mutex_);
    while (pulls_.size() < count) changed_.Wait(mutex_);
    return pulls_;
  }

  absl::StatusOr<WeightsHeader> Pull(const GroupPulls::Asked& pull, std::span<float> weights) {
    MutexLock lock(mutex_);
    pulls_.push_back(pull);
    changed_.NotifyAll();
    while (!is_stopped_ && pull_answers_.empty()) changed_.Wait(mutex_);
    if (is_stopped_) return absl::CancelledError("stopped");
    absl::StatusOr<WeightsHeader> answer = std::move(pull_answers_.front());
    pull_answers_.pop_front();
    if (answer.ok()) std::ranges::fill(weights, static_cast<float>(Value(answer->version)));
    return answer;
  }

  void Stop() {
    MutexLock lock(mutex_);
    is_stopped_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  Reply reply_ ABSL_GUARDED_BY(mutex_);
  std::vector<Exchanged> exchanged_ ABSL_GUARDED_BY(mutex_);
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<GroupPulls::Asked> pulls_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::StatusOr<WeightsHeader>> pull_answers_ ABSL_GUARDED_BY(mutex_);
};

class FakeUplinks final : public Uplinks {
 public:
  explicit FakeUplinks(ScriptedShard& shard) : shard_(shard) {}

  void Follow(const std::string& address) override { EXPECT_EQ(address, "shard:1"); }
  std::unique_ptr<Uplink> Make(const std::string& address, uint64_t run,
                               const ShardMap& map) override {
    EXPECT_EQ(address, "shard:1");
    EXPECT_EQ(run, kRun);
    EXPECT_EQ(map.parameters(), kValues);
    return std::make_unique<FakeUplink>(shard_);
  }
  void Stop() override { shard_.Stop(); }

 private:
  class FakeUplink final : public Uplink {
   public:
    explicit FakeUplink(ScriptedShard& shard) : shard_(shard) {}
    absl::StatusOr<ExchangeAnswer> Exchange(const PushHeader& composite,
                                            std::span<const float> values,
                                            std::span<float> weights) override {
      return shard_.Exchange(composite, values, weights);
    }
    absl::StatusOr<WeightsHeader> Pull(const Identity& worker, Version min_version,
                                       Generation min_generation,
                                       std::span<float> weights) override {
      return shard_.Pull({worker, min_version, min_generation}, weights);
    }

   private:
    ScriptedShard& shard_;
  };

  ScriptedShard& shard_;
};

/// Returns a shard's answer to a composite that became part of `version`.
inline ExchangeAnswer Applied(const PushHeader& composite, uint64_t version) {
  ExchangeAnswer answer;
  answer.push.version = Version{version};
  if (!composite.pull) return answer;
  answer.weights = WeightsHeader{.version = Version{version}, .count = kValues};
  for (const PushPart& part : composite.parts) {
    answer.weights->parts.push_back({.work = {}, .clock = WorkerClock{100 + Value(part.worker)}});
  }
  return answer;
}

/// Returns the settings of a run with two groups of two workers.
inline RunSpec TreeRun() {
  RunSpec run;
  run.cluster.workers = 4;
  run.cluster.tree.fanout = 2;
  run.consistency = {.policy = PolicyKind::kAsync};
  return run;
}

/// Returns the orders of such a run while it trains with so many members.
inline ServerOrders TreeOrders(uint32_t members) {
  const TensorLayout layout = LayoutOf({kValues});
  ServerOrders orders;
  orders.number = 1;
  orders.run = kRun;
  orders.phase = Phase::kTraining;
  orders.model = ModelOrders{.layout = layout, .shard_map = *ShardMap::Cut(layout, 1)};
  orders.view.number = ViewNumber{1};
  for (uint32_t id = 0; id < members; ++id) {
    orders.view.members.push_back({WorkerId{id}, Incarnation{id + 1}, true});
  }
  return orders;
}

/// The aggregator of the first group of such a run.
class AggregatorTest : public testing::Test {
 protected:
  /// Begins a run that has so many members.
  void Start(uint32_t members) {
    Aggregator::Options options = {.run = run_};
    options.now = [this] { return absl::UnixEpoch() + absl::Seconds(seconds_.load()); };
    aggregator_ = std::make_unique<Aggregator>(options, std::make_unique<FakeUplinks>(shard_));
    orders_ = TreeOrders(members);
    aggregator_->OnOrders(orders_);
    aggregator_->OnUpstream("shard:1");
  }

  PushHeader Header(uint32_t worker, uint64_t base = 0) const {
    return {.identity = {kRun, WorkerId{worker}, Incarnation{worker + 1}},
            .sequence = Sequence{1},
            .shard_map = orders_.model->shard_map.fingerprint(),
            .base = Version{base},
            .count = kValues,
            .examples = 1,
            .pull = true};
  }

  /// Pushes a gradient of equal values. Returns the answer, if it is there already.
  std::optional<Answer> Push(const PushHeader& header, float value, RecordingCall& call) {
    BegunPush begun = aggregator_->BeginPush(header);
    EXPECT_FALSE(begun.refusal.has_value()) << begun.refusal->message;
    PushAssembly push(header, begun.push);
    EXPECT_TRUE(push.Add(0, Received(std::vector<float>(kValues, value))).ok());
    return aggregator_->FinishPush(std::move(push), &call);
  }

  RunSpec run_ = TreeRun();
  std::atomic<int64_t> seconds_ = 0;  // The aggregator's clock, which only the test moves.
  ServerOrders orders_;
  ScriptedShard shard_;
  std::unique_ptr<Aggregator> aggregator_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_AGGREGATOR_AGGREGATOR_FIXTURE_H_
