#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_CHANNEL_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/rpc/transport_options.h"
#include "common/settings/run_spec.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/raw_call.h"
#include "worker/client/retries.h"
#include "worker/client/server_addresses.h"

namespace slipstream {

/// The connection to one shard over the best path that both ends can use.
///
/// TCP reaches every shard. Over TCP the client tells the shard who calls and asks for the name of
/// the shard's local socket. If the client can connect to that socket, the shard is on this
/// machine, and calls go there. The name is random, so no other process can be mistaken for the
/// shard.
///
/// If the shard's server was started again at another address, the next call goes there, over a
/// path that is agreed on anew, as with a server that was started again where it was. It does so
/// even if the old address still answers: a server that the coordinator has lost, and replaced,
/// must not take pushes that the shard will not have.
///
/// Not thread-safe: one owner; other threads may throw its CancelSwitch.
class ShardChannel {
 public:
  using Transport = WireSpec::Transport;

  struct Options {
    Transport transport = Transport::kAuto;
    TransportOptions bounds;

    /// The member that calls; the default if a reader who is none does. A shard closes connections
    /// on which nobody says who calls, or pulls.
    Identity identity;

    /// Set by an aggregator (cluster.tree), whose number among the servers this is; `identity` then
    /// has the run and nothing else.
    std::optional<uint32_t> server;

    /// The credentials by which this process identifies itself over TCP.
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();

    /// Where the run's servers are now; null if they stay where they are. Must outlive the channel.
    const ServerAddresses* addresses = nullptr;

    /// How long the shard may take to answer which paths it offers.
    absl::Duration answer_timeout = absl::Seconds(30);
  };

  /// `address` is host:port. `cancel` must outlive this object. `shard`: the shard whose server is
  /// there, and is followed; nothing if the channel leads to an aggregator.
  ShardChannel(std::string address, const Options& options, CancelSwitch& cancel,
               std::optional<ShardId> shard = {});

  /// Returns the channel for the next call; it stays the same as long as calls succeed. Agrees on a
  /// path first if there is none, at the shard's present address. UNAVAILABLE while the shard
  /// cannot be asked; INVALID_ARGUMENT if the configuration demands a path that has never existed.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Get();

  /// Starts a call over that channel.
  absl::StatusOr<std::unique_ptr<RawCall>> Start(const std::string& method, absl::Time deadline);

  /// Returns why the call ended early; never OK.
  absl::Status Failure(RawCall& call, absl::Time deadline);

  /// Returns whether the shard's server is at another address by now, to which the next call goes.
  bool HasMoved() const;

  /// Notes that a call failed. The shard may have been replaced, so the next call agrees on a path
  /// anew.
  void OnFailure() { agreed_.reset(); }

  /// True if the agreed path is the shard's local socket.
  bool is_local() const { return agreed_ != nullptr && agreed_ != peer_.channel; }

  /// The shard, by its TCP channel. Get may replace it.
  const CalledPeer& peer() const { return peer_; }

  /// host:port, where the shard was found last.
  const std::string& address() const { return address_; }

 private:
  CalledPeer MakePeer() const;
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Agree();

  /// Connects to the shard's local socket, or returns why it cannot.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectToSocket(const std::string& name) const;
  absl::StatusOr<std::string> AskForSocket();

  // Constant after construction.
  const Options options_;
  const std::optional<ShardId> shard_;

  CancelSwitch& cancel_;
  std::string address_;
  CalledPeer peer_;
  std::shared_ptr<grpc::Channel> agreed_;  // Null until a path is agreed on.
  std::string told_;                       // The text last logged about the path.
  bool was_local_ = false;                 // A local socket of the shard was there once.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_CHANNEL_H_
