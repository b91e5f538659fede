#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_CHANNEL_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/shard_messages.h"
#include "common/rpc/transport_options.h"
#include "common/run/run_spec.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/raw_call.h"

namespace slipstream {

/// The connection to one shard, by the best path that both ends can use.
///
/// TCP reaches every shard. Over it the shard is told who calls, and asked for the name of its
/// local socket; if that can be connected to, the shard is on this machine, and calls go there. The
/// name is random, so that no other process is taken for it.
///
/// Not thread-safe: one owner; other threads may throw its switch.
class ShardChannel {
 public:
  using Transport = WireSpec::Transport;

  struct Options {
    Transport transport = Transport::kAuto;
    TransportOptions bounds;

    /// The member that calls: a shard closes connections of which it does not hear for whom.
    Identity identity;

    /// How this process shows who it is, over TCP.
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();

    /// The shard has to say by then what it offers.
    absl::Duration answer_timeout = absl::Seconds(30);
  };

  /// `address` is host:port. `cancel` must outlive this.
  ShardChannel(std::string address, const Options& options, CancelSwitch& cancel);

  /// The channel for the next call, as long as calls succeed always the same one. Agrees on a path
  /// first if need be. UNAVAILABLE while the shard cannot be asked; INVALID_ARGUMENT if the path
  /// was chosen by name and there is none.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Get();

  /// Starts a call over that.
  absl::StatusOr<std::unique_ptr<RawCall>> Start(const std::string& method, absl::Time deadline);

  /// Why the call ended early; never OK.
  absl::Status Failure(RawCall& call, absl::Time deadline);

  /// A call failed: the shard may have been replaced, so the next one agrees on a path anew.
  void OnFailure() { agreed_.reset(); }

  /// What was agreed on last goes over the shard's local socket.
  bool is_local() const { return agreed_ != nullptr && agreed_ != tcp_; }

  /// Shows whether the shard's machine can be reached.
  grpc::Channel& tcp() { return *tcp_; }

 private:
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Agree();

  /// Connects to the shard's local socket; says why it cannot.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectToSocket(const std::string& name) const;
  absl::StatusOr<std::string> AskForSocket();

  // Constant after construction.
  const std::string address_;
  const Options options_;
  const std::shared_ptr<grpc::Channel> tcp_;

  CancelSwitch& cancel_;
  std::shared_ptr<grpc::Channel> agreed_;  // Null until they have.
  std::string told_;                       // What was logged last.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_CHANNEL_H_
