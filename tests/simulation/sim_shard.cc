#include "tests/simulation/sim_shard.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/encoding.h"
#include "common/kernels/copy_values.h"
#include "common/wire/shard_wire.h"
#include "common/wire/values_codec.h"
#include "proto/shard.pb.h"
#include "server/service/chunked_answer.h"

namespace slipstream {
namespace {

constexpr size_t kAnswerChunkBytes = 512;
constexpr uint64_t kStreams = 1000;  // Of the seed, from here on: one of each shard.

}  // namespace

SimShard::SimShard(ShardId shard, const Scenario& scenario, PlantedBug bug, EventQueue& queue,
                   Network& network, History& history, Trace& trace)
    : shard_(shard),
      network_(network),
      history_(history),
      chance_(scenario.seed, kStreams + Value(shard)),
      engine_(shard, scenario, bug, queue, chance_, history, trace,
              [this](uint64_t stream, absl::StatusOr<Answer> answer) {
                OnAnswer(stream, std::move(answer));
              }),
      sync_(shard, scenario, chance_.Time(absl::ZeroDuration(), absl::Milliseconds(100)), queue,
            network, engine_) {}

void SimShard::OnMessage(const StreamPtr& stream, const grpc::ByteBuffer& message) {
  Call& call = calls_[stream->number];
  call.stream = stream;
  switch (stream->kind) {
    case StreamKind::kInitialize:
      return OnInitializeMessage(call, message);
    case StreamKind::kPull:
      return OnPullMessage(call, message);
    case StreamKind::kExchange:
      return OnPushMessage(call, message);
  }
}

void SimShard::OnCancel(const StreamPtr& stream) {
  auto call = calls_.extract(stream->number);
  if (call.empty()) return;
  const Call& gone = call.mapped();
  engine_.Cancel(stream->number);
  if (gone.assembly.has_value()) engine_.AbandonPush(gone.assembly->header());
  if (gone.is_pinning) engine_.FinishPull(ShardCore::ReaderOf(*gone.pull));
}

void SimShard::OnSent(const StreamPtr& stream) {
  const auto found = calls_.find(stream->number);
  if (found == calls_.end() || !found->second.is_pinning) return;
  const ShardCore::Reader reader = ShardCore::ReaderOf(*found->second.pull);
  End(found->second, absl::OkStatus());
  engine_.FinishPull(reader);
}

// What a call says.

void SimShard::OnPushMessage(Call& call, const grpc::ByteBuffer& message) {
  absl::StatusOr<PushChunk> chunk = DecodePushChunk(message);
  PS_CHECK(chunk.ok());
  if (chunk->header.has_value()) BeginPush(call, *chunk->header);
  if (call.refusal.has_value()) {
    PS_CHECK(chunk->values.count() <= call.values_to_discard);
    call.values_to_discard -= chunk->values.count();
    if (call.values_to_discard > 0) return;
    return Send(call, {.push = *std::exchange(call.refusal, {})});
  }
  PS_CHECK(call.assembly.has_value());
  PS_CHECK(call.assembly->Add(chunk->offset, std::move(chunk->values)).ok());
  if (!call.assembly->is_complete()) return;
  engine_.FinishPush(call.stream->number, *std::exchange(call.assembly, {}));
}

void SimShard::BeginPush(Call& call, const PushHeader& header) {
  PS_CHECK(!call.assembly.has_value() && !call.refusal.has_value());
  call.push = header;
  call.refusal = engine_.BeginPush(header);
  if (call.refusal.has_value()) {
    call.values_to_discard = header.count;
  } else {
    call.assembly.emplace(header);
  }
}

void SimShard::OnPullMessage(Call& call, const grpc::ByteBuffer& message) {
  v1::PullRequest wire;
  PS_CHECK(DecodeWithValues(message, wire).ok());
  const absl::StatusOr<PullRequest> request = FromWire(wire);
  PS_CHECK(request.ok());
  call.pull = *request;
  if (request->trains) {
    history_.Add(WeightsAsked{shard_, request->min_version, *request->identity});
  }
  engine_.Pull(call.stream->number, *request);
}

void SimShard::OnInitializeMessage(Call& call, const grpc::ByteBuffer& message) {
  absl::StatusOr<InitializeChunk> chunk = DecodeInitializeChunk(message);
  PS_CHECK(chunk.ok());
  if (absl::Status taken = TakeInitialChunk(call, *chunk); !taken.ok()) return End(call, taken);
  if (call.initial_received < call.initialize->count) return;
  End(call, engine_.FinishInitialize(*call.initialize, std::move(call.initial)));
}

absl::Status SimShard::TakeInitialChunk(Call& call, const InitializeChunk& chunk) {
  if (chunk.header.has_value()) {
    absl::StatusOr<std::shared_ptr<FloatBuffer>> buffer = engine_.BeginInitialize(*chunk.header);
    if (!buffer.ok()) return buffer.status();
    call.initialize = chunk.header;
    call.initial = *std::move(buffer);
  }
  PS_CHECK(call.initialize.has_value() && chunk.offset == call.initial_received);
  const size_t count = chunk.values.count();
  CopyValues(chunk.values.segments(), call.initial->values().subspan(chunk.offset, count));
  call.initial_received += count;
  return absl::OkStatus();
}

// What a call is answered.

void SimShard::OnAnswer(uint64_t stream, absl::StatusOr<Answer> answer) {
  Call& call = calls_.at(stream);
  if (!answer.ok()) return End(call, answer.status());
  if (answer->weights.has_value()) NoteServed(call, *answer->weights);
  Send(call, *std::move(answer));
}

void SimShard::NoteServed(const Call& call, const ServedWeights& weights) {
  WeightsServed served = {shard_, weights.header.version, Version{}, std::nullopt};
  if (call.pull.has_value()) {
    served.asked = call.pull->min_version;
    if (call.pull->trains) served.trainer = call.pull->identity;
  } else {
    served.trainer = call.push->identity;
  }
  history_.Add(served);
}

void SimShard::Send(Call& call, Answer answer) {
  const bool is_pull = call.stream->kind == StreamKind::kPull;
  call.is_pinning = is_pull;
  ChunkedAnswer chunks(is_pull ? ChunkedAnswer::Form::kWeights : ChunkedAnswer::Form::kExchange,
                       std::move(answer), kAnswerChunkBytes, Encoding::kFp32);
  std::vector<grpc::ByteBuffer> messages;
  while (std::optional<grpc::ByteBuffer> message = chunks.Next()) {
    messages.push_back(*std::move(message));
  }
  network_.SendDown(call.stream, std::move(messages));
}

void SimShard::End(const Call& call, const absl::Status& status) {
  const StreamPtr stream = call.stream;
  calls_.erase(stream->number);
  network_.Finish(stream, status);
}

std::string SimShard::Describe() const {
  return fmt::format("{} calls {}", engine_.Describe(), calls_.size());
}

}  // namespace slipstream
