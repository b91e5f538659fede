#include "tests/simulation/sim_aggregator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/encoding.h"
#include "common/kernels/copy_values.h"
#include "common/wire/chunk_wire.h"
#include "server/aggregator/aggregator.h"
#include "server/aggregator/combined_values.h"
#include "server/aggregator/shard_uplinks.h"
#include "server/data_plane/chunked_answer.h"

namespace slipstream {
namespace {

constexpr size_t kAnswerChunkBytes = 512;

// The first of the streams of draws of a seed's aggregators, one each.
constexpr uint64_t kStreams = 6000;
constexpr uint32_t kBusyPerMille = 10;

}  // namespace

SimAggregator::SimAggregator(const SimWorld& world, uint32_t group, ShardId shard, uint64_t number)
    : world_(world),
      group_(group),
      shard_(shard),
      number_(number),
      chance_(world.scenario.seed, kStreams + number),
      pushes_({.run = world.scenario.run,
               .shard = shard,
               .group = group,
               .composites_max = Aggregator::kUplinksMax}),
      sync_({.talk = {.shard = shard,
                      .address = fmt::format("aggregator-{}-{}:7070", group, Value(shard)),
                      .instance = number + 1},
             .first_pause = {}},
            process_, world.queue, world.network, *this) {}

void SimAggregator::Kill() {
  world_.trace.Line("aggregator {}.{} is killed", group_, Value(shard_));
  process_->is_dead = true;
  for (const auto& [number, call] : calls_) {
    world_.network.Finish(call.stream, absl::UnavailableError("the aggregator is gone"));
  }
  calls_.clear();
  world_.network.DropAllOf(process_);
}

// The coordinator.

void SimAggregator::OnOrders(const ServerOrders& orders) {
  pushes_.OnOrders(orders);
  Advance();
}

void SimAggregator::Describe(v1::SyncServerRequest& request) {
  pushes_.Describe(*request.mutable_aggregator(), world_.queue.now());
}

// Pushes of workers.

void SimAggregator::OnMessage(const StreamPtr& stream, const grpc::ByteBuffer& message) {
  Call& call = calls_[stream->number];
  call.stream = stream;
  absl::StatusOr<PushChunk> chunk = DecodePushChunk(message);
  PS_CHECK(chunk.ok());
  std::vector<float> values(chunk->values.count());
  CopyValues(chunk->values.segments(), values);
  PushFraming::Outcome outcome =
      call.pushes.OnChunk(*std::move(chunk), std::nullopt,
                          [this](const PushHeader& header) { return BeginPush(header); });
  if (auto* refused = std::get_if<PushFraming::Refused>(&outcome)) {
    PS_CHECK(!refused->ends_stream);
    Reply(call, {.push = std::move(refused->reply)});
    return Advance();  // The others need not wait for this worker.
  }
  auto* complete = std::get_if<PushFraming::Complete>(&outcome);
  if (complete == nullptr) return;
  NoteArrival(complete->push.header(), std::move(values));
  auto sent_back = pushes_.FinishPush(CallId{stream->number}, complete->push, world_.queue.now());
  if (sent_back.has_value()) {
    Reply(call, {.push = *std::move(sent_back)});
  }
  Advance();
}

BegunPush SimAggregator::BeginPush(const PushHeader& header) {
  // No aggregator says so today, but the protocol lets it.
  const bool is_busy = world_.network.IsFaulty() && chance_.Happens(kBusyPerMille);
  BegunPush begun = pushes_.BeginPush(header, is_busy || !has_upstream_ ? "no shard" : "");
  if (is_busy) begun.refusal->outcome = PushOutcome::kRetryLater;
  return begun;
}

void SimAggregator::NoteArrival(const PushHeader& header, std::vector<float> values) {
  // Encoded gradients come in one chunk; others are known from their base.
  if (world_.scenario.run.wire.push_codec == Encoding::kFp32) return;
  world_.history.Add(GradientArrived{KeyOf(shard_, header), header.base, header.batches,
                                     std::make_shared<std::vector<float>>(std::move(values))});
}

void SimAggregator::OnCancel(const StreamPtr& stream) {
  auto gone = calls_.extract(stream->number);
  if (gone.empty()) return;
  if (const auto push = gone.mapped().pushes.Abandon()) pushes_.AbandonPush(push->header());
  pushes_.Cancel(CallId{stream->number}, world_.queue.now());
  pushes_.OnCallGone(CallId{stream->number});
  Advance();
}

// Composites.

void SimAggregator::Advance() {
  const absl::Time now = world_.queue.now();
  Answers held;
  do {
    // A push may have waited for an answer that nobody waits for any more.
    held = pushes_.TakeHeld(now);
    Deliver(held);
    while (std::optional<PushGroup::Outgoing> composite = pushes_.Take(now)) {
      SendUp(*std::move(composite));
    }
  } while (!held.empty());
  const absl::Time look = pushes_.NextLook();
  if (look >= next_look_) return;
  next_look_ = look;
  world_.network.AtProcess(process_, look, [this] {
    next_look_ = absl::InfiniteFuture();
    Advance();
  });
}

SimAggregator::Uplink& SimAggregator::FreeUplink() {
  const auto found =
      std::ranges::find_if(uplinks_, [](const auto& uplink) { return !uplink->lane.is_busy(); });
  if (found != uplinks_.end()) return **found;
  const absl::Duration patience = ShardUplinks::PatienceIn(world_.scenario.run);
  const PushTries::Options options = {
      .retry = {.give_up_after = patience},
      .overload_timeout = patience,
      .seed = world_.scenario.run.seed + number_ + uplinks_.size() + Value(shard_)};
  uplinks_.push_back(std::make_unique<Uplink>(
      Uplink{.lane = ShardLane(shard_, process_, world_.queue, world_.network, options)}));
  return *uplinks_.back();
}

void SimAggregator::SendUp(PushGroup::Outgoing composite) {
  if (!composite.may_leave) {
    Deliver(pushes_.OnAnswer(composite.id, absl::ResourceExhaustedError("no uplink"), nullptr,
                             world_.queue.now()));
    return;
  }
  Uplink& uplink = FreeUplink();
  uplink.values.resize(composite.header.count);
  CombineValues(composite.gradients, composite.weighing, uplink.values);
  uplink.weights = FloatBuffer::TryMake(uplink.values.size());
  PS_CHECK(uplink.weights != nullptr);
  world_.trace.Line("aggregator {}.{} sends {} pushes of base {}", group_, Value(shard_),
                    composite.header.parts.size(), Value(composite.header.base));
  const auto on_answer = [&uplink](const ExchangeAnswer& answer) {
    uplink.answer = answer;  // Only the last answer of an exchange counts.
    return absl::OkStatus();
  };
  const auto done = [this, id = composite.id, &uplink](const auto& weights) {
    uplink.lane.HangUp();
    absl::StatusOr<ExchangeAnswer> answered = absl::UnavailableError("no shard");
    if (weights.ok()) answered = uplink.answer;
    Deliver(pushes_.OnAnswer(id, std::move(answered), uplink.weights, world_.queue.now()));
    Advance();
  };
  uplink.lane.Exchange(composite.header, uplink.values, nullptr, uplink.weights->values(),
                       /*holds_base=*/false, on_answer, done);
}

void SimAggregator::Deliver(Answers answers) {
  for (Answer& answer : answers) {
    const auto call = calls_.find(Value(answer.call));
    if (answer.refusal.ok()) {
      Reply(call->second, std::move(answer));
    } else {
      const StreamPtr stream = call->second.stream;
      calls_.erase(call);
      pushes_.OnCallGone(answer.call);
      world_.network.Finish(stream, answer.refusal);
    }
  }
}

void SimAggregator::Reply(const Call& call, Answer answer) {
  ChunkedAnswer chunks(ChunkedAnswer::Form::kExchange, std::move(answer), kAnswerChunkBytes,
                       Encoding::kFp32);
  std::vector<grpc::ByteBuffer> messages;
  while (std::optional<grpc::ByteBuffer> message = chunks.Next()) {
    messages.push_back(*std::move(message));
  }
  world_.network.SendDown(call.stream, std::move(messages));
}

std::string SimAggregator::State() const {
  v1::AggregatorStatus status;
  pushes_.Describe(status, world_.queue.now());
  std::string text = fmt::format("aggregator {}.{}{}: calls {}", group_, Value(shard_),
                                 is_dead() ? " dead" : "", calls_.size());
  for (const uint32_t worker : status.waiting_for()) text += fmt::format(" waits for {}", worker);
  return text;
}

}  // namespace slipstream
