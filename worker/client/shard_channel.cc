#include "worker/client/shard_channel.h"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "common/base/log_line.h"
#include "common/local/local_socket.h"
#include "common/log/log.h"
#include "common/process/steady_time.h"
#include "common/process/version.h"
#include "common/rpc/message_bytes.h"
#include "common/wire/shard_wire.h"
#include "proto/shard.pb.h"

namespace slipstream {
namespace {

constexpr char kGetTransports[] = "/slipstream.v1.Shard/GetTransports";

}  // namespace

ShardChannel::ShardChannel(std::string address, const Options& options, CancelSwitch& cancel,
                           std::optional<ShardId> shard)
    : options_(options),
      shard_(shard),
      cancel_(cancel),
      address_(std::move(address)),
      peer_(MakePeer()) {}

CalledPeer ShardChannel::MakePeer() const {
  const std::string what =
      shard_.has_value() ? fmt::format("shard {}", Value(*shard_)) : std::string("aggregator");
  return {
      fmt::format("{} at {}", what, address_),
      grpc::CreateCustomChannel(address_, options_.credentials, ClientArguments(options_.bounds))};
}

bool ShardChannel::HasMoved() const {
  return shard_.has_value() && options_.addresses != nullptr &&
         !options_.addresses->IsAt(*shard_, address_);
}

absl::StatusOr<std::unique_ptr<RawCall>> ShardChannel::Start(const std::string& method,
                                                             absl::Time deadline) {
  const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = Get();
  if (!channel.ok()) return channel.status();
  return std::make_unique<RawCall>(*channel, method, &cancel_, deadline);
}

absl::Status ShardChannel::Failure(RawCall& call, absl::Time deadline) {
  const absl::Status status = call.Finish(deadline);
  // The path is as good as before where the shard has answered that it does not keep a version.
  if (!absl::IsOutOfRange(status)) OnFailure();
  return status.ok() ? absl::UnavailableError("ended the call early") : status;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> ShardChannel::Get() {
  if (HasMoved()) {
    address_ = options_.addresses->Of(*shard_);
    agreed_.reset();
    peer_ = MakePeer();
  }
  if (agreed_ != nullptr) return agreed_;
  absl::StatusOr<std::shared_ptr<grpc::Channel>> agreed = Agree();
  if (agreed.ok()) agreed_ = *agreed;
  return agreed;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> ShardChannel::Agree() {
  absl::StatusOr<std::string> name = AskForSocket();
  // A shard that does not know this request offers no socket. Any other failure says nothing about
  // that.
  if (!name.ok() && !absl::IsUnimplemented(name.status())) return name.status();
  if (options_.transport == Transport::kTcp) return peer_.channel;
  absl::StatusOr<std::shared_ptr<grpc::Channel>> local =
      name.ok() ? ConnectToSocket(*name) : absl::NotFoundError("the shard offers no local socket");
  LogLine line("reaching shard", {{"at", address_}, {"transport", local.ok() ? "unix" : "tcp"}});
  if (!local.ok()) {
    const std::string reason(local.status().message());
    if (options_.transport != Transport::kAuto) {
      // A server may have ended after it named its socket.
      const bool may_pass = was_local_ || absl::IsUnavailable(local.status()) ||
                            absl::IsResourceExhausted(local.status());
      if (may_pass) return absl::UnavailableError("local socket: " + reason);
      return absl::InvalidArgumentError(fmt::format(
          "wire.transport is {}, and the shard at {} cannot be reached so: {}; use auto or tcp",
          options_.transport == Transport::kUnix ? "unix" : "shm", address_, reason));
    }
    line.fields.emplace_back("reason", reason);
  }
  std::string told = TextOf(line);
  if (told != std::exchange(told_, told)) Log(spdlog::level::info, line);
  was_local_ |= local.ok();
  return local.ok() ? local : peer_.channel;
}

absl::StatusOr<std::string> ShardChannel::AskForSocket() {
  const absl::Time deadline = SteadyNow() + options_.answer_timeout;
  RawCall call(peer_.channel, kGetTransports, &cancel_, deadline);
  v1::GetTransportsRequest request;
  if (options_.identity.run != 0) *request.mutable_identity() = ToWire(options_.identity);
  if (options_.server.has_value()) request.set_server(*options_.server);
  request.set_protocol(kProtocol);
  grpc::ByteBuffer message;
  const bool is_answered =
      call.Write(ToBytes(request), RawCall::Next::kReads, deadline) && call.Read(message, deadline);
  const absl::Status status = call.Finish(deadline);
  if (!is_answered || !status.ok()) {
    return status.ok() ? absl::UnavailableError("ended the call early") : status;
  }
  v1::GetTransportsReply reply;
  if (!FromBytes(message, reply)) return absl::InternalError("answer: no GetTransportsReply");
  if (reply.local_socket().empty()) return absl::UnimplementedError("");
  return reply.local_socket();
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> ShardChannel::ConnectToSocket(
    const std::string& name) const {
  absl::StatusOr<FileDescriptor> socket = ConnectLocally(name);
  if (absl::IsNotFound(socket.status())) {
    return absl::NotFoundError("it is on another machine or in another network namespace");
  }
  if (!socket.ok()) return socket.status();
  if (absl::Status user = CheckSameUser(*socket); !user.ok()) return user;
  return grpc::CreateCustomInsecureChannelFromFd("localhost", socket->Release(),
                                                 ClientArguments(options_.bounds));
}

}  // namespace slipstream
