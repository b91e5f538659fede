#ifndef SLIPSTREAM_TESTS_SIMULATION_NETWORK_H_
#define SLIPSTREAM_TESTS_SIMULATION_NETWORK_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "deploy/lab/event_queue.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/scenario.h"

namespace slipstream {

/// A process that takes part. It is shared by the process and by everything in flight to it.
struct Process {
  bool is_dead = false;

  /// The process stands still until this time; calls and messages that arrive meanwhile wait.
  absl::Time frozen_until = absl::InfinitePast();
};

enum class StreamKind { kInitialize, kPull, kExchange };

/// One streaming call to a shard, or to an aggregator of that shard. Messages stay in order each
/// way, until the call ends.
struct Stream {
  uint64_t number = 0;
  StreamKind kind = StreamKind::kExchange;
  ShardId shard{};
  std::optional<uint32_t> group;  // Set if the call goes to the shard's aggregator of this group.
  std::shared_ptr<Process> client;

  /// Called at the client. Nothing is called after on_end, or after the client has dropped the
  /// stream.
  std::function<void(const grpc::ByteBuffer&)> on_message;
  std::function<void(const absl::Status&)> on_end;

  bool client_is_gone = false;
  bool server_is_gone = false;

  // When the last message arrives, in each direction: no message overtakes an earlier one.
  absl::Time up_last;
  absl::Time down_last;
};
using StreamPtr = std::shared_ptr<Stream>;

/// The side of streams that shards and aggregators have.
class ShardEnds {
 public:
  virtual ~ShardEnds() = default;
  virtual void OnMessage(const StreamPtr& stream, const grpc::ByteBuffer& message) = 0;

  /// The client is gone. Called at most once, and no other call follows.
  virtual void OnCancel(const StreamPtr& stream) = 0;

  /// The client has received the last message of an answer.
  virtual void OnSent(const StreamPtr& stream) = 0;
};

enum class Method {
  kSyncServer,
  kRegister,
  kPrepareModel,
  kFinishInitialization,
  kHeartbeat,
  kGetWork,
  kReport,
  kLeave,
  kFollow,
};

/// The coordinator's side of calls. It calls `respond` once.
using Respond = std::function<void(absl::Status, std::string)>;
using CoordinatorEnd = std::function<void(Method, const std::string& request, Respond respond)>;

/// Carries calls between processes. As drawn from the seed, calls are late, out of order, repeated,
/// partly delivered, or lost. A lost call fails at its caller after a while.
///
/// Not thread-safe: one owner. All arguments must outlive it.
class Network {
 public:
  Network(const Scenario& scenario, EventQueue& queue, uint64_t stream);

  void Connect(ShardEnds& shards, CoordinatorEnd coordinator);

  /// Runs `call` at the process at `time`, unless the process dies before. A frozen process runs it
  /// later.
  void AtProcess(const std::shared_ptr<Process>& process, absl::Time time,
                 std::function<void()> call);

  // A client's side of streams.

  /// `group`: see Stream.
  StreamPtr Open(StreamKind kind, ShardId shard, const std::shared_ptr<Process>& client,
                 std::optional<uint32_t> group = std::nullopt);

  /// Sends one request. Draws what happens to the request and to its answer.
  void SendUp(const StreamPtr& stream, std::vector<grpc::ByteBuffer> messages);

  /// The client no longer needs the stream, or is dead.
  void Drop(const StreamPtr& stream);
  void DropAllOf(const std::shared_ptr<Process>& client);

  // The side of a shard or an aggregator.

  void SendDown(const StreamPtr& stream, std::vector<grpc::ByteBuffer> messages);

  /// Ends the call after the messages sent so far.
  void Finish(const StreamPtr& stream, const absl::Status& status);

  /// Calls the coordinator. `done` is called once, at the client.
  void Call(Method method, std::string request, const std::shared_ptr<Process>& client,
            std::function<void(absl::StatusOr<std::string>)> done);

  /// Returns true if no stream is open and no request is in flight.
  bool is_quiet() const { return open_.empty() && late_calls_ == 0; }

  /// Returns true in phase one, in which faults happen.
  bool IsFaulty() const { return queue_.now() - absl::UnixEpoch() < faults_.end; }

 private:
  struct PendingCall;

  absl::Duration Delay();
  bool IsLost() { return IsFaulty() && chance_.Happens(faults_.loss_per_mille); }
  void Carry(const StreamPtr& stream, const std::vector<grpc::ByteBuffer>& messages, size_t count);
  void SendTwice(const StreamPtr& stream, const std::vector<grpc::ByteBuffer>& messages);
  void Break(const StreamPtr& stream);
  void CancelAtServer(const StreamPtr& stream);
  void Deliver(Method method, const std::string& request, const std::shared_ptr<PendingCall>& call);

  const Faults faults_;
  const absl::Duration delay_max_;
  EventQueue& queue_;
  Chance chance_;
  ShardEnds* shards_ = nullptr;
  CoordinatorEnd coordinator_;
  uint64_t next_stream_ = 1;
  std::map<uint64_t, std::weak_ptr<Stream>> open_;
  uint32_t late_calls_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_NETWORK_H_
