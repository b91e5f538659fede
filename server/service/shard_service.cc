#include "server/service/shard_service.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "common/base/limits.h"
#include "common/rpc/status_conversion.h"
#include "common/wire/chunk_bytes.h"
#include "common/wire/shard_wire.h"
#include "server/listen/caller.h"
#include "server/service/exchange_call.h"
#include "server/service/initialize_call.h"
#include "server/service/pull_call.h"
#include "server/service/push_call.h"

namespace slipstream {
namespace {

/// The most threads for sockets of shared memory. Each runs on a core of its own while workers push
/// at the same time; more would wait for memory.
constexpr unsigned kSocketThreadsMax = 8;

/// Returns whether the call came over a local socket: gRPC names peers that LocalListener handed to
/// it after neither kind of address.
bool CameLocally(const grpc::CallbackServerContext& context) {
  const std::string peer = context.peer();
  return !peer.starts_with("ipv4:") && !peer.starts_with("ipv6:");
}

}  // namespace

ShardService::ShardService(const Options& options, std::optional<PushLog> push_log,
                           std::string local_socket, Connections* connections)
    : chunk_bytes_(options.run.wire.chunk_bytes > 0 ? options.run.wire.chunk_bytes
                                                    : kAutoChunkBytesMax),
      local_socket_(std::move(local_socket)),
      connections_(connections),
      servers_(static_cast<uint32_t>(options.run.cluster.servers.size())),
      now_(options.now),
      lease_(options.run.cluster.lease),
      engine_(options, std::move(push_log)),
      watch_({.window =
                  TransferWatch::Options::WindowFor(ChunkedAnswer::AwaitedBytesMax(chunk_bytes_)),
              .others_wait = [this] { return engine_.ReadersWait(); },
              .now = now_}),
      sockets_(std::clamp(std::thread::hardware_concurrency(), 1u, kSocketThreadsMax)) {}

absl::Status ShardService::NoteMember(const v1::GetTransportsRequest& request, grpc_call* call) {
  Caller caller(connections_, call);
  const Identity identity = FromWire(request.identity());
  absl::Status may_be;
  if (request.has_server()) {
    may_be = caller.MayBe(ShardId{request.server()});
    const bool is_server = request.server() < servers_ && engine_.IsRun(identity.run);
    if (may_be.ok() && is_server) caller.IsMember(ShardId{request.server()});
  } else if (request.has_identity()) {
    may_be = caller.MayBe(identity.worker);
    const bool is_worker = engine_.MayBeMember(identity) && Value(identity.worker) < kWorkersMax;
    if (may_be.ok() && is_worker) caller.IsMember(identity.worker);
  }
  return may_be;
}

grpc::ServerUnaryReactor* ShardService::GetTransports(grpc::CallbackServerContext* context,
                                                      const v1::GetTransportsRequest* request,
                                                      v1::GetTransportsReply* reply) {
  const absl::Status noted = NoteMember(*request, context->c_call());
  if (noted.ok()) reply->set_local_socket(local_socket_);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(noted));
  return reactor;
}

grpc::ServerReadReactor<grpc::ByteBuffer>* ShardService::Initialize(
    grpc::CallbackServerContext* context, grpc::ByteBuffer* response) {
  return new InitializeCall(engine_, connections_, watch_, initializations_, context->c_call(),
                            response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* ShardService::Pull(grpc::CallbackServerContext* context,
                                                               const grpc::ByteBuffer* request) {
  return new PullCall(engine_, connections_, watch_, context->c_call(), chunk_bytes_, *request);
}

grpc::ServerReadReactor<grpc::ByteBuffer>* ShardService::Push(grpc::CallbackServerContext* context,
                                                              grpc::ByteBuffer* response) {
  return new PushCall(engine_, connections_, watch_, pushes_, context->c_call(), response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ShardService::Exchange(
    grpc::CallbackServerContext* context) {
  const ExchangeCall::Place place = {.engine = engine_,
                                     .connections = connections_,
                                     .transfers = watch_,
                                     .exchanges = exchanges_,
                                     .memory_use = memory_use_,
                                     .sockets = sockets_,
                                     .default_chunk_bytes = chunk_bytes_,
                                     .lease = lease_};
  return ExchangeCall::Start(place, context->c_call(), CameLocally(*context));
}

v1::ShardStatus ShardService::ShardReport() {
  // This runs several times in a lease, even if nothing else happens.
  memory_use_.Expire(now_());
  v1::ShardStatus status = engine_.Report();
  MutexLock lock(rate_mutex_);
  status.set_updates_per_second(updates_.Add(now_(), status.version()));
  return status;
}

}  // namespace slipstream
