#ifndef SLIPSTREAM_TESTS_SUPPORT_FAKE_SHARD_H_
#define SLIPSTREAM_TESTS_SUPPORT_FAKE_SHARD_H_

#include <grpcpp/server.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/protocol/tensor_set.h"
#include "proto/shard.grpc.pb.h"

namespace slipstream {

/// A shard in this process, on a port of the system's choice, that behaves as a test tells it. It
/// uses protobuf's own encoder, so it also checks the client's encoder and decoder. Every push that
/// it takes makes a version: weights −= gradient. It supports the codec bf16 (weights are truncated
/// to it, not rounded), and int8 for gradients.
///
/// Thread-safe: guarded by its own mutex.
class FakeShard final : public v1::Shard::Service {
 public:
  /// A fault to inject at one push, in place of taking and answering it.
  enum class Fault {
    kNone,
    kBreakBeforeTaking,
    kBreakAfterTaking,
    kRetryLater,
    kRefuseForLackOfMemory,  // Fails like gRPC without memory.
    kAnswerNever,            // Until the call is cancelled.
    kBreakWithinWeights,
    kMoveOnWithinWeights,  // Breaks too; has a newer version at the retry.
    kFenceWithinWeights,   // Breaks too; answers the retry with FENCED.
    kReturnWithinWeights,  // Breaks too; has returned to version 0 at the retry.
    kPauseWithinWeights,   // Pauses after the first chunk, until GoOn or cancelled.
  };

  struct Push {
    v1::PushHeader header;
    std::vector<float> values;
    std::vector<uint64_t> offsets = {};  // Offsets of its chunks, in order of arrival.
    float clip = 1;                      // Recorded, and otherwise ignored, as is the next.
    TensorSet absent = {};
  };

  FakeShard(size_t count, uint64_t shard_map);
  ~FakeShard() override;

  /// host:port
  const std::string& address() const { return address_; }

  /// Ends its server, and all calls.
  void Stop();

  // Faults apply to the coming pushes in the order in which they were added.
  void AddFault(Fault fault);
  void RefuseNext(v1::PushOutcome outcome);
  void GoOn();

  /// Sets the work that the weights of each version name for their reader.
  void NameWork(std::function<v1::RoundWork(uint64_t version)> work);
  void SetVersion(uint64_t version);

  /// Goes on from an older version of its own, in a new generation.
  void ReturnTo(uint64_t version);

  /// Has the next pull break off after its first chunk, and makes a newer version then.
  void MoveOnWithinPull() { moves_on_within_pull_ = true; }

  /// From now on no version comes any more: pulls are answered with what there is.
  void Drain();

  /// Gives weights the stamps of a policy that keeps workers in step.
  void KeepInStep() { is_in_step_ = true; }

  std::vector<float> weights() const;
  std::vector<float> weights_of(uint64_t version) const;
  uint64_t version() const;

  /// The pushes taken, and the number of all pushes received.
  std::vector<Push> taken() const;
  int received() const;

  /// The number of values received, including those of pushes that were never complete.
  uint64_t values_received() const;
  std::vector<v1::PullRequest> pulls() const;

  grpc::Status Initialize(grpc::ServerContext* context,
                          grpc::ServerReader<v1::InitializeRequest>* reader,
                          v1::InitializeReply* reply) override;
  grpc::Status Pull(grpc::ServerContext* context, const v1::PullRequest* request,
                    grpc::ServerWriter<v1::WeightsChunk>* writer) override;
  grpc::Status Exchange(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ExchangeReply, v1::PushChunk>* stream) override;

 private:
  using Stream = grpc::ServerReaderWriter<v1::ExchangeReply, v1::PushChunk>;

  void MoveOn();
  void AwaitGoOn(const grpc::ServerContext& context);
  grpc::Status Receive(const v1::PushChunk& chunk, Push& push, size_t& left);
  grpc::Status Answer(grpc::ServerContext* context, Push push, Stream* stream);
  v1::PushReply Take(Push push) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::WeightsHeader Header() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Message, typename Write>
  static void WriteWeights(Message first, uint32_t chunk_bytes, v1::Encoding encoding,
                           const std::vector<float>& weights, const Write& write);

  const uint64_t shard_map_;
  std::string address_;

  mutable Mutex mutex_;
  CondVar published_;
  std::vector<float> weights_ ABSL_GUARDED_BY(mutex_);
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_drained_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> is_in_step_ = false;
  std::atomic<bool> moves_on_within_pull_ = false;
  std::map<uint64_t, std::vector<float>> history_ ABSL_GUARDED_BY(mutex_);  // By version.
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Fault> faults_ ABSL_GUARDED_BY(mutex_);
  bool may_go_on_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<v1::PushOutcome> refusal_ ABSL_GUARDED_BY(mutex_);
  std::function<v1::RoundWork(uint64_t)> work_ ABSL_GUARDED_BY(mutex_);
  std::vector<Push> taken_ ABSL_GUARDED_BY(mutex_);
  int received_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t values_received_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<v1::PullRequest> pulls_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<grpc::Server> server_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_FAKE_SHARD_H_
