#ifndef SLIPSTREAM_WORKER_CLIENT_COORDINATOR_CLIENT_H_
#define SLIPSTREAM_WORKER_CLIENT_COORDINATOR_CLIENT_H_

#include <grpcpp/security/credentials.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/process/steady_time.h"
#include "proto/coordinator.grpc.pb.h"
#include "worker/client/retries.h"

namespace slipstream {

/// A worker's calls to the coordinator. Each call has a deadline. It is repeated while the
/// coordinator cannot be reached or is overloaded, until the retry options give up; it then fails
/// with UNAVAILABLE or RESOURCE_EXHAUSTED, and the message names the address. A refusal by the
/// coordinator itself is returned unchanged.
///
/// Thread-safe: const after construction and after PersistFor, which belongs to one owner.
class CoordinatorClient {
 public:
  struct Options {
    RetryOptions retry;

    /// Tests replace it.
    SteadyClock now = SteadyNow;

    /// How long one try may take, in addition to the wait that its request asks for.
    absl::Duration call_timeout = absl::Seconds(5);

    /// Seeds the jitter of the waits between tries.
    uint64_t seed = 1;

    /// The credentials by which this process identifies itself. The channels to shards use the
    /// same.
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  };

  /// `address` is host:port.
  CoordinatorClient(std::string address, const Options& options, Sleeper sleeper);

  /// Sets for how long every later call is repeated. REQUIRES: no other thread makes calls yet.
  void PersistFor(absl::Duration give_up_after);

  absl::StatusOr<v1::RegisterReply> Register(const v1::RegisterRequest& request) const;
  absl::StatusOr<v1::PrepareModelReply> PrepareModel(const v1::PrepareModelRequest& request) const;
  absl::Status FinishInitialization(const v1::FinishInitializationRequest& request) const;
  absl::StatusOr<v1::MeetReply> Meet(const v1::MeetRequest& request) const;
  absl::Status Report(const v1::ReportRequest& request) const;

  absl::StatusOr<v1::FollowReply> Follow(const v1::FollowRequest& request) const;

  // These are tried once: a worker that leaves does not wait for a coordinator that is gone.
  absl::Status Leave(const v1::LeaveRequest& request) const;
  absl::StatusOr<v1::FollowReply> FollowOnce(const v1::FollowRequest& request) const;
  absl::StatusOr<v1::RunStatus> GetStatus() const;

  /// Repeats `attempt` by the same rules as the calls above.
  template <typename Reply>
  absl::StatusOr<Reply> Persist(const std::function<absl::StatusOr<Reply>()>& attempt) const {
    absl::StatusOr<Reply> reply;
    const absl::Status status = NewRetries().Persist([&] {
      reply = attempt();
      return reply.status();
    });
    if (!status.ok()) return status;
    return reply;
  }

  const Options& options() const { return options_; }
  const std::string& address() const { return address_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return peer_.channel; }

 private:
  template <typename Request, typename Reply>
  using Method = grpc::Status (v1::Coordinator::Stub::*)(grpc::ClientContext*, const Request&,
                                                         Reply*);

  template <typename Request, typename Reply>
  absl::StatusOr<Reply> CallOnce(Method<Request, Reply> method, const Request& request,
                                 absl::Duration wait) const;
  template <typename Request, typename Reply>
  absl::StatusOr<Reply> Call(Method<Request, Reply> method, const Request& request,
                             absl::Duration wait = absl::ZeroDuration()) const;

  Retries NewRetries() const;

  // Constant after construction and PersistFor.
  const std::string address_;
  Options options_;
  const Sleeper sleeper_;
  const CalledPeer peer_;  // The stub uses its channel too.
  const std::unique_ptr<v1::Coordinator::Stub> stub_;

  mutable std::atomic<uint64_t> calls_{0};  // Gives each call a seed of its own.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_COORDINATOR_CLIENT_H_
