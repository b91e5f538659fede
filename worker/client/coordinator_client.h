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
#include "proto/coordinator.grpc.pb.h"
#include "worker/client/retries.h"
#include "worker/client/retry_schedule.h"

namespace slipstream {

/// A worker's calls to the coordinator. Each has a deadline, and is repeated while the coordinator
/// cannot be reached or has too much to do, until the retry options give up; the failure then is
/// UNAVAILABLE or RESOURCE_EXHAUSTED and names the address. What the coordinator itself refuses
/// comes back as it is.
///
/// Thread-safe: const after construction and PersistFor, which belongs to one owner.
class CoordinatorClient {
 public:
  struct Options {
    RetryOptions retry;

    /// Of one try, beside the wait that a request asks for.
    absl::Duration call_timeout = absl::Seconds(5);

    /// Seeds the jitter of waits.
    uint64_t seed = 1;

    /// How this process shows who it is; the channels to shards use the same.
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  };

  /// `address` is host:port.
  CoordinatorClient(std::string address, const Options& options, Sleeper sleeper);

  /// Calls from now on are repeated for so long. REQUIRES: no other thread makes any yet.
  void PersistFor(absl::Duration give_up_after);

  absl::StatusOr<v1::RegisterReply> Register(const v1::RegisterRequest& request) const;
  absl::StatusOr<v1::PrepareModelReply> PrepareModel(const v1::PrepareModelRequest& request) const;
  absl::Status FinishInitialization(const v1::FinishInitializationRequest& request) const;
  absl::Status Report(const v1::ReportRequest& request) const;

  // One try each: whoever leaves does not wait for a coordinator that is gone.
  absl::Status Leave(const v1::LeaveRequest& request) const;
  absl::StatusOr<v1::RunStatus> GetStatus() const;

  /// Makes `attempt` as often as the calls above are made.
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
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

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

  // Constant after construction, or PersistFor.
  const std::string address_;
  const std::string name_;  // For people.
  Options options_;
  const Sleeper sleeper_;
  const std::shared_ptr<grpc::Channel> channel_;  // Also the stub's.
  const std::unique_ptr<v1::Coordinator::Stub> stub_;

  mutable std::atomic<uint64_t> calls_{0};  // Seeds of their own for calls side by side.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_COORDINATOR_CLIENT_H_
