#include "server/data_plane/data_plane.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/process/version.h"
#include "common/rpc/status_conversion.h"
#include "common/wire/chunk_bytes.h"
#include "common/wire/shard_wire.h"
#include "server/data_plane/chunked_answer.h"
#include "server/data_plane/exchange_call.h"
#include "server/data_plane/initialize_call.h"
#include "server/data_plane/pull_call.h"
#include "server/data_plane/push_call.h"
#include "server/data_plane/shard_engine.h"

namespace slipstream {
namespace {

/// The most threads for sockets of shared memory. Each runs on a core of its own while workers push
/// at the same time; more would wait for memory.
constexpr unsigned kSocketThreadsMax = 8;

/// Ends a call of a method that is the shard's alone. Deletes itself when gRPC is done with it.
class NotAtAggregator final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  explicit NotAtAggregator(const std::string& method) {
    Finish({grpc::StatusCode::UNIMPLEMENTED, "an aggregator has no method " + method});
  }
  void OnDone() override { delete this; }
};

/// Returns whether the call came over a local socket: gRPC names peers that LocalListener handed to
/// it after neither kind of address.
bool CameLocally(const grpc::CallbackServerContext& context) {
  const std::string peer = context.peer();
  return !peer.starts_with("ipv4:") && !peer.starts_with("ipv6:");
}

}  // namespace

DataPlane::DataPlane(Options options, DataPlaneEngine& engine, ShardEngine* shard)
    : options_(std::move(options)),
      chunk_bytes_(options_.chunk_bytes > 0 ? options_.chunk_bytes : kAutoChunkBytesMax),
      engine_(engine),
      shard_(shard),
      watch_({.window =
                  TransferWatch::Options::WindowFor(ChunkedAnswer::AwaitedBytesMax(chunk_bytes_)),
              .others_wait = [&engine] { return engine.ReadersWait(); },
              .now = [&engine] { return engine.now(); }}),
      sockets_(std::clamp(std::thread::hardware_concurrency(), 1u, kSocketThreadsMax)) {
  PS_CHECK(shard == nullptr || shard == &engine);
}

absl::Status DataPlane::NoteMember(const v1::GetTransportsRequest& request, Caller& caller) {
  const Identity identity = FromWire(request.identity());
  const char* const peer = request.has_server()     ? "the other server"
                           : request.has_identity() ? "the worker"
                                                    : "the reader";
  absl::Status may_be = CheckProtocol(request.protocol(), peer);
  if (!may_be.ok()) return may_be;
  if (request.has_server()) {
    may_be = caller.MayBe(ShardId{request.server()});
    // The numbers of aggregators follow those of the shards' servers.
    const uint32_t numbers = options_.cluster.AggregatorNumber(options_.cluster.groups(), 0);
    const bool is_server =
        request.server() < numbers && identity.run != 0 && identity.run == engine_.RunNumber();
    if (may_be.ok() && is_server) caller.NoteMember(ShardId{request.server()});
  } else if (request.has_identity()) {
    may_be = caller.MayBe(identity.worker);
    const bool is_worker = engine_.MayBeMember(identity) && Value(identity.worker) < kWorkersMax;
    if (may_be.ok() && is_worker) caller.NoteMember(identity.worker);
  }
  // A server that was started again knows nobody before its first orders. It would take the values
  // that come next for a stranger's, and close the connection.
  if (may_be.ok() && identity.run != 0 && engine_.RunNumber() == 0) {
    return absl::UnavailableError("RETRY_LATER: the server has not heard yet which run this is");
  }
  return may_be;
}

grpc::ServerUnaryReactor* DataPlane::GetTransports(grpc::CallbackServerContext* context,
                                                   const v1::GetTransportsRequest* request,
                                                   v1::GetTransportsReply* reply) {
  Caller caller(options_.connections, context->c_call());
  const absl::Status noted = NoteMember(*request, caller);
  if (noted.ok()) reply->set_local_socket(options_.local_socket);
  reply->set_protocol(kProtocol);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(noted));
  return reactor;
}

grpc::ServerReadReactor<grpc::ByteBuffer>* DataPlane::Initialize(
    grpc::CallbackServerContext* context, grpc::ByteBuffer* response) {
  if (shard_ == nullptr) return RefuseAtAggregator(context, "Initialize");
  return new InitializeCall(*shard_, Guards(&initializations_), context->c_call(), response);
}

grpc::ServerReadReactor<grpc::ByteBuffer>* DataPlane::Push(grpc::CallbackServerContext* context,
                                                           grpc::ByteBuffer* response) {
  if (shard_ == nullptr) return RefuseAtAggregator(context, "Push");
  return new PushCall(*shard_, Guards(&pushes_), context->c_call(), response);
}

grpc::ServerReadReactor<grpc::ByteBuffer>* DataPlane::RefuseAtAggregator(
    grpc::CallbackServerContext* context, const std::string& method) {
  const Caller counted(options_.connections, context->c_call());
  return new NotAtAggregator(method);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* DataPlane::Pull(grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request) {
  return new PullCall(engine_, Guards(nullptr), context->c_call(), chunk_bytes_, *request);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* DataPlane::Exchange(
    grpc::CallbackServerContext* context) {
  const ExchangeCall::Place place = {.engine = engine_,
                                     .guards = Guards(&exchanges_),
                                     .memory_use = memory_use_,
                                     .sockets = sockets_,
                                     .default_chunk_bytes = chunk_bytes_,
                                     .lease = options_.cluster.lease};
  return ExchangeCall::Start(place, context->c_call(), CameLocally(*context));
}

}  // namespace slipstream
