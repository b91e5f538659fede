#ifndef SLIPSTREAM_TESTS_WORKER_CLIENT_PARAMETER_CLIENT_FIXTURE_H_
#define SLIPSTREAM_TESTS_WORKER_CLIENT_PARAMETER_CLIENT_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/base/encoding.h"
#include "common/base/mutex.h"
#include "common/layout/tensor_layout.h"
#include "tests/support/fake_shard.h"
#include "worker/client/parameter_client.h"

namespace slipstream {

inline constexpr size_t kParameters = 10'000;
inline constexpr ShardId kShard0{0};
inline constexpr ShardId kShard1{1};

inline ShardMap TwoShards() {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("all", {kParameters}).ok());
  return ShardMap::Cut(layout, 2).value();
}

/// Records the events that it is told of.
class NotingListener final : public WeightsListener {
 public:
  void WeightsArrived(ParameterRange range) override {
    MutexLock lock(mutex_);
    values_ += range.size();
  }
  void RevokeWeights(ParameterRange range) override {
    MutexLock lock(mutex_);
    revoked_.push_back(range);
  }
  void AbandonWeights() override {
    MutexLock lock(mutex_);
    is_abandoned_ = true;
  }

  size_t values() const {
    MutexLock lock(mutex_);
    return values_;
  }
  std::vector<ParameterRange> revoked() const {
    MutexLock lock(mutex_);
    return revoked_;
  }
  bool is_abandoned() const {
    MutexLock lock(mutex_);
    return is_abandoned_;
  }

 private:
  mutable Mutex mutex_;
  size_t values_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<ParameterRange> revoked_ ABSL_GUARDED_BY(mutex_);
  bool is_abandoned_ ABSL_GUARDED_BY(mutex_) = false;
};

/// A client and two shards, with which it exchanges several small chunks.
class ParameterClientTest : public testing::Test {
 protected:
  ParameterClientTest()
      : map_(TwoShards()),
        first_(map_.range(kShard0).size(), map_.fingerprint()),
        second_(map_.range(kShard1).size(), map_.fingerprint()),
        weights_(kParameters),
        gradient_(kParameters) {
    for (size_t i = 0; i < kParameters; ++i) gradient_[i] = static_cast<float>(i) / 16;
  }

  std::unique_ptr<ParameterClient> NewClient(bool in_step = false,
                                             Encoding encoding = Encoding::kFp32) {
    ParameterClient::Options options;
    options.identity = {.run = 5, .worker = WorkerId{1}, .incarnation = Incarnation{2}};
    options.servers = {first_.address(), second_.address()};
    options.map = map_;
    options.in_step = in_step;
    options.shards.chunk_bytes = 4096;
    options.shards.push_encoding = encoding;
    options.frozen = frozen_;
    options.shards.channel.addresses = &addresses_;
    // The fake shard sends weights in no other encoding.
    if (encoding == Encoding::kBf16) options.shards.weights_encoding = encoding;
    options.shards.retry = {.first_wait = absl::Milliseconds(1), .wait_max = absl::Milliseconds(5)};
    return std::make_unique<ParameterClient>(
        options, std::vector<ParameterClient::Slot>{{weights_, gradient_, &listener_}},
        [](absl::Duration) { return true; }, cancel_);
  }

  /// Returns a client that has pulled, and whose unit has two batches, 7 and 8.
  std::unique_ptr<ParameterClient> NewReadyClient() {
    auto client = NewClient();
    EXPECT_TRUE(client->OnNews(WorkUnit{.id = 1, .first = 7, .batches = 2}).ok());
    EXPECT_TRUE(client->OnNews(NoMoreUnits{}).ok());
    EXPECT_TRUE(client->Advance().ok());
    return client;
  }

  /// Pushes a whole gradient and waits until both shards have answered.
  static absl::Status Push(ParameterClient& client, uint64_t batch) {
    client.BeginPush(0, {.batches = {{batch}}, .examples = 32});
    if (absl::Status status = client.FinishPush(0, {.loss = 0.5f}); !status.ok()) return status;
    return client.Drain();
  }

  std::vector<float> ShardWeights() const {
    std::vector<float> all = first_.weights();
    const std::vector<float> rest = second_.weights();
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }

  const ShardMap map_;
  FakeShard first_;
  FakeShard second_;
  ServerAddresses addresses_;  // Empty unless a test notes some.
  CancelSwitch cancel_;
  PushEncoders::Frozen frozen_;
  std::vector<float> weights_;
  std::vector<float> gradient_;
  NotingListener listener_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_CLIENT_PARAMETER_CLIENT_FIXTURE_H_
