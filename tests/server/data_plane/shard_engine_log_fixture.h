#ifndef SLIPSTREAM_TESTS_SERVER_DATA_PLANE_SHARD_ENGINE_LOG_FIXTURE_H_
#define SLIPSTREAM_TESTS_SERVER_DATA_PLANE_SHARD_ENGINE_LOG_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/mutex.h"
#include "server/data_plane/shard_engine.h"
#include "server/storage/checkpoint_store.h"
#include "server/storage/log_segment.h"
#include "tests/server/data_plane/first_orders.h"
#include "tests/server/data_plane/gated_disk.h"
#include "tests/support/captured_log.h"

namespace slipstream {

/// A call that keeps its answer.
///
/// Thread-safe.
class KeptCall final : public WaitingCall {
 public:
  void OnAnswer(Answer answer) override {
    MutexLock lock(mutex_);
    answer_ = std::move(answer);
  }
  void OnLagged(const absl::Status& status) override { OnAnswer({.refusal = status}); }

  bool has_answer() {
    MutexLock lock(mutex_);
    return answer_.has_value();
  }
  Answer answer() {
    MutexLock lock(mutex_);
    return answer_.value();
  }

 private:
  Mutex mutex_;
  std::optional<Answer> answer_ ABSL_GUARDED_BY(mutex_);
};

/// A shard on a simulated disk. Its learning rate is 1 and its weights are 0 at first, so each push
/// of ones takes 1 away.
class ShardEngineLogTest : public testing::Test {
 protected:
  static constexpr uint64_t kRun = 77;
  static constexpr uint64_t kValues = 16;
  static constexpr char kLogFiles[] = "/log-";

  ~ShardEngineLogTest() override {
    disk_.Open();
    engine_.reset();
  }

  static Identity identity() { return {kRun, WorkerId{0}, Incarnation{1}}; }
  uint64_t map() const { return orders_.model->shard_map.fingerprint(); }

  /// The options of a process.
  ShardEngine::Options Options() {
    ShardEngine::Options options;
    options.run.consistency = {ConsistencySpec::Policy::kAsync};
    options.run.optimizer.learning_rate = 1.0;
    options.run.durability = {.level = DurabilitySpec::Level::kSynced, .directory = "/saved"};
    options.open_store = [this](uint64_t run, bool /*has_begun*/) {
      return CheckpointStore::Open(disk_, "/saved", run, ShardId{0});
    };
    options.on_lost_log = [this](const absl::Status& lost) {
      MutexLock lock(mutex_);
      lost_log_ = lost;
    };
    return options;
  }

  /// Starts a process, which knows nothing but what is on the disk.
  void StartProcess() {
    {
      MutexLock lock(mutex_);
      lost_log_ = absl::OkStatus();  // That of the process before.
    }
    engine_ = std::make_unique<ShardEngine>(Options(), std::nullopt);
    GiveOrders();
  }

  void GiveOrders() {
    ++orders_.number;
    engine_->OnOrders(orders_);
  }

  /// The process is killed, and the machine loses what was not synced; `seed` draws what of that is
  /// left. Then another process begins.
  void Kill(std::optional<uint64_t> seed = std::nullopt) {
    disk_.StopMachine();
    engine_.reset();
    disk_.disk().Crash(seed);
    StartProcess();
  }

  static void Await(const std::function<bool()>& condition, const std::string& what) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (!condition()) {
      ASSERT_LT(absl::Now(), deadline) << "in vain: " << what;
      std::this_thread::yield();
    }
  }

  void AwaitInitialized() {
    Await([this] { return engine_->Initialized(); }, "weights that are safe");
    TellCoordinator();
  }

  /// The coordinator hears where the shard goes on, and takes it.
  void TellCoordinator() {
    engine_->OnDescribed();
    engine_->OnCoordinatorAnswered();
  }

  InitializeHeader initial_header() const { return {identity(), orders_.grant, map(), kValues}; }

  void SendInitialWeights(float value) {
    const auto buffer = engine_->BeginInitialize(initial_header());
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    std::ranges::fill((*buffer)->values(), value);
    ASSERT_TRUE(engine_->FinishInitialize(initial_header(), *buffer).ok());
  }

  /// Brings a new run to the beginning of its training.
  void BeginTraining() {
    StartProcess();
    SendInitialWeights(0.0f);
    AwaitInitialized();
    orders_.phase = Phase::kTraining;
    GiveOrders();
  }

  /// Forgets all processes and their disk, and does the same.
  void BeginTrainingOnNewDisk() {
    engine_.reset();
    disk_.disk() = SimulatedDisk();
    calls_.clear();
    orders_.phase = Phase::kInitializing;
    BeginTraining();
  }

  PushHeader Header(uint64_t sequence, uint64_t base) const {
    PushHeader header;
    header.identity = identity();
    header.sequence = Sequence{sequence};
    header.shard_map = map();
    header.base = Version{base};
    header.count = kValues;
    header.examples = 32;
    return header;
  }

  /// Pushes ones. The answer comes to the call of the sequence, at once or later.
  void Push(uint64_t sequence, uint64_t base) {
    KeptCall& call = calls_[sequence];
    const PushHeader header = Header(sequence, base);
    BegunPush begun = engine_->BeginPush(header);
    std::optional<Answer> answer;
    if (begun.refusal.has_value()) {
      answer = engine_->Refuse(*begun.refusal, &call);
    } else {
      PushAssembly push(header, begun.push, begun.draft);
      ReceivedValues::Buffer ones = ReceivedValues::MakeBuffer(kValues);
      std::ranges::fill(ones.to, 1.0f);
      ASSERT_TRUE(push.Add(0, std::move(ones.values)).ok());
      answer = engine_->FinishPush(std::move(push), &call);
    }
    if (answer.has_value()) call.OnAnswer(*std::move(answer));
  }

  PushReply ReplyTo(uint64_t sequence) {
    Await([&] { return calls_[sequence].has_answer(); }, "the answer to a push");
    return calls_[sequence].answer().push.value();
  }

  /// Pushes ones, and returns the answer.
  PushReply PushAndWait(uint64_t sequence, uint64_t base) {
    calls_.erase(sequence);
    Push(sequence, base);
    return ReplyTo(sequence);
  }

  /// Asks for a version. The answer comes to the call, at once or later.
  void Pull(KeptCall& call, uint64_t min_version) {
    PullRequest request;
    request.shard_map = map();
    request.min_version = Version{min_version};
    std::optional<Answer> answer = engine_->Pull(request, &call);
    if (answer.has_value()) call.OnAnswer(*std::move(answer));
  }

  struct Pulled {
    uint64_t version = 0;
    float value = 0;  // The first one.
  };

  Pulled PullAndWait(uint64_t min_version = 0) {
    KeptCall call;
    Pull(call, min_version);
    Await([&] { return call.has_answer(); }, "the answer to a pull");
    const Answer answer = call.answer();
    if (!answer.refusal.ok()) return {};
    engine_->FinishPull(&call, std::nullopt);
    return {Value(answer.header->version), answer.weights->values().front()};
  }

  void OrderSave() {
    ++orders_.save.number;
    GiveOrders();
  }

  void AwaitSaved(uint64_t version) {
    Await(
        [&] {
          const auto saved = engine_->Saved();
          return saved.has_value() && !saved->empty() && saved->back().version == Version{version};
        },
        "a checkpoint of version " + std::to_string(version));
  }

  /// Returns the path of the log's newest segment.
  std::string NewestSegment() {
    const std::string directory = DirectoryOfShard();
    return SegmentPath(directory, ListSegments(disk_, directory)->back());
  }

  std::string DirectoryOfShard() {
    const std::string run = "/saved/" + disk_.List("/saved")->back().name;
    return run + "/" + disk_.List(run)->back().name;
  }

  absl::Status LostLog() {
    MutexLock lock(mutex_);
    return lost_log_;
  }

  CapturedLog log_;
  GatedDisk disk_;
  ServerOrders orders_ = FirstOrders(kRun, kValues, /*members=*/1, /*grant=*/3);
  std::map<uint64_t, KeptCall> calls_;
  Mutex mutex_;
  absl::Status lost_log_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ShardEngine> engine_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_DATA_PLANE_SHARD_ENGINE_LOG_FIXTURE_H_
