#include "tests/simulation/sim_aggregator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/encoding.h"
#include "common/kernels/copy_values.h"
#include "common/protocol/composite_push.h"
#include "common/wire/chunk_wire.h"
#include "server/aggregator/combined_values.h"
#include "server/service/chunked_answer.h"

namespace slipstream {
namespace {

constexpr size_t kAnswerChunkBytes = 512;

// The same value is in ShardUplinks::Options.
constexpr absl::Duration kUplinkGivesUpAfter = absl::Seconds(5);

}  // namespace

SimAggregator::SimAggregator(const SimWorld& world, uint32_t group, ShardId shard, uint64_t number)
    : world_(world),
      group_(group),
      shard_(shard),
      number_(number),
      combiner_(Combiner::Options::For(world.scenario.run, group)),
      sync_({.shard = shard,
             .address = fmt::format("aggregator-{}-{}:7070", group, Value(shard)),
             .instance = number + 1},
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
  orders_ = orders;
  combiner_.OnView(orders.view);
  combiner_.SetPolicy(world_.scenario.PolicyOf(orders.stage).traits());
  Advance();
}

void SimAggregator::Describe(v1::SyncServerRequest& request) {
  v1::AggregatorStatus& status = *request.mutable_aggregator();
  status.set_group(group_);
  status.set_shard(Value(shard_));
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
                          [&](const PushHeader& header) { return BeginPush(call, header); });
  if (auto* refused = std::get_if<PushFraming::Refused>(&outcome)) {
    PS_CHECK(!refused->ends_stream);
    return Reply(call, {.push = std::move(refused->reply), .weights = std::nullopt});
  }
  auto* complete = std::get_if<PushFraming::Complete>(&outcome);
  if (complete == nullptr) return;
  NoteArrival(complete->push.header(), std::move(values));
  FinishPush(call, std::move(complete->push));
}

BegunPush SimAggregator::BeginPush(Call& call, const PushHeader& header) {
  BegunPush begun;
  if (const std::string fault = FaultOf(header); !fault.empty()) {
    begun.refusal = NotCombined(fault);
    if (IsMember(header.identity)) combiner_.OnAway(header.identity.worker);
    Advance();
    return begun;
  }
  call.worker = header.identity.worker;
  bytes_held_ += header.count * sizeof(float);
  return begun;
}

bool SimAggregator::IsMember(const Identity& identity) const {
  const Member* const member = orders_.view.Find(identity.worker);
  return member != nullptr && member->incarnation == identity.incarnation &&
         combiner_.IsOfGroup(identity.worker);
}

std::string SimAggregator::FaultOf(const PushHeader& header) const {
  if (!has_upstream_ || !orders_.model.has_value()) return "it does not know its shard yet";
  if (!IsMember(header.identity)) return "its sender is no member of the group";
  const ShardMap& map = orders_.model->shard_map;
  const size_t values = map.range(shard_).size();
  const uint32_t depth = world_.scenario.run.training.pipeline_depth;
  const bool fits = header.identity.run == orders_.run && header.shard_map == map.fingerprint() &&
                    header.count == values && header.kind == PushKind::kGradient &&
                    header.slot < depth && !IsComposite(header);
  if (!fits) return "it is no gradient that the shard takes";
  const uint64_t pushes_max = uint64_t{world_.scenario.run.cluster.tree.fanout} * depth + 1;
  return bytes_held_ / sizeof(float) / values >= pushes_max ? "it holds too many" : "";
}

void SimAggregator::NoteArrival(const PushHeader& header, std::vector<float> values) {
  // Encoded gradients come in one chunk; others are known from their base.
  if (world_.scenario.run.wire.push_codec == Encoding::kFp32) return;
  world_.history.Add(GradientArrived{
      {shard_, header.identity.worker, header.identity.incarnation, header.sequence},
      header.base,
      header.batches,
      std::make_shared<std::vector<float>>(std::move(values))});
}

void SimAggregator::FinishPush(Call& call, PushAssembly push) {
  const PushHeader header = push.header();
  const PartId part{next_part_++};
  call.part = part;
  parts_.emplace(part, Part{call.stream->number, std::move(push)});
  combiner_.OnPush(part, header, world_.queue.now());
  Advance();
}

void SimAggregator::OnCancel(const StreamPtr& stream) {
  auto extracted = calls_.extract(stream->number);
  if (extracted.empty()) return;
  Call& gone = extracted.mapped();
  if (const auto push = gone.pushes.Abandon()) bytes_held_ -= push->header().count * sizeof(float);
  if (gone.part.has_value() && combiner_.OnGone(*gone.part, world_.queue.now())) {
    bytes_held_ -= parts_.at(*gone.part).push.header().count * sizeof(float);
    parts_.erase(*gone.part);
  }
  const bool has_another = std::ranges::any_of(
      calls_, [&](const auto& call) { return call.second.worker == gone.worker; });
  if (gone.worker.has_value() && !has_another) combiner_.OnAway(*gone.worker);
  Advance();
}

// Composites.

void SimAggregator::Advance() {
  const absl::Time now = world_.queue.now();
  std::vector<CompositeId> held;
  do {
    while (const std::optional<Combiner::Composite> composite = combiner_.TakeComposite(now)) {
      SendUp(*composite);
    }
    held = combiner_.TakeHeld(now);
    HandOn(held);
  } while (!held.empty());
  const absl::Time look = combiner_.NextLook();
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
  RetryOptions retry;
  retry.give_up_after = kUplinkGivesUpAfter;
  retry.now = [&queue = world_.queue] { return queue.now(); };
  const uint64_t seed = world_.scenario.run.seed + number_ + uplinks_.size();
  uplinks_.push_back(std::make_unique<Uplink>(
      Uplink{.lane = ShardLane(shard_, process_, world_.queue, world_.network, retry, seed)}));
  return *uplinks_.back();
}

void SimAggregator::SendUp(const Combiner::Composite& composite) {
  std::vector<const PushHeader*> headers;
  std::vector<uint64_t> checksums;
  std::vector<WeighedPayload> gradients;
  for (const PartId id : composite.parts) {
    PushAssembly& push = parts_.at(id).push;
    headers.push_back(&push.header());
    checksums.push_back(push.Facts().checksum);
    gradients.push_back({.payload = push.TakePayload(),
                         .examples = push.header().examples,
                         .clip = push.header().seal.clip});
    bytes_held_ -= push.header().count * sizeof(float);
  }
  Uplink& uplink = FreeUplink();
  const PolicyTraits::Weighing weighing = world_.scenario.PolicyOf(orders_.stage).traits().weighing;
  uplink.header = CompositeOf(headers, checksums, weighing == PolicyTraits::Weighing::kExamples);
  uplink.values.resize(headers.front()->count);
  CombineValues(gradients, weighing, uplink.values);
  uplink.weights = FloatBuffer::TryMake(uplink.values.size());
  PS_CHECK(uplink.weights != nullptr);
  sent_[composite.id].parts = composite.parts;
  world_.trace.Line("aggregator {}.{} sends {} pushes of base {}", group_, Value(shard_),
                    composite.parts.size(), Value(uplink.header.base));
  uplink.lane.Exchange(
      uplink.header, uplink.values, nullptr, uplink.weights->values(),
      [this, id = composite.id, &uplink](const absl::StatusOr<ShardLane::Answer>& answer) {
        uplink.lane.HangUp();
        OnAnswer(id, uplink, answer);
      });
}

void SimAggregator::OnAnswer(CompositeId composite, const Uplink& uplink,
                             const absl::StatusOr<ShardLane::Answer>& answer) {
  Combiner::Verdict verdict = {.is_counted = answer.ok() && !IsRefusal(answer->push->outcome),
                               .goes_on = {}};
  if (verdict.is_counted) {
    std::optional<CountedComposite>& counted = sent_.at(composite).counted;
    counted = {uplink.header, {*answer->push, answer->weights}, uplink.weights};
    verdict.goes_on = GoesOn(*counted);
  }
  if (!answer.ok()) sent_.at(composite).failure = absl::UnavailableError("no shard");
  HandOn(combiner_.OnAnswer(composite, std::move(verdict), world_.queue.now()));
  Advance();
}

void SimAggregator::HandOn(const std::vector<CompositeId>& composites) {
  std::vector<Sent> answered;
  std::vector<const CountedComposite*> counted;
  for (const CompositeId id : composites) answered.push_back(std::move(sent_.extract(id).mapped()));
  for (const Sent& sent : answered) {
    if (sent.counted.has_value()) counted.push_back(&*sent.counted);
  }
  const CountedComposite* const newest = NewestOf(counted);
  for (const Sent& sent : answered) {
    for (size_t i = 0; i < sent.parts.size(); ++i) {
      const auto part = parts_.extract(sent.parts[i]);
      const auto call = calls_.find(part.mapped().call);
      if (call == calls_.end()) continue;
      if (!sent.failure.ok()) {
        const StreamPtr stream = call->second.stream;
        calls_.erase(call);
        world_.network.Finish(stream, sent.failure);
        continue;
      }
      Answer answer = {.push = NotCombined("the shard did not count it with others"),
                       .weights = std::nullopt};
      if (sent.counted.has_value()) {
        answer = AnswerOf(part.mapped().push.header(), *sent.counted, i, newest);
      }
      Reply(call->second, std::move(answer));
    }
  }
}

void SimAggregator::Reply(Call& call, Answer answer) {
  call.part.reset();
  ChunkedAnswer chunks(ChunkedAnswer::Form::kExchange, std::move(answer), kAnswerChunkBytes,
                       Encoding::kFp32);
  std::vector<grpc::ByteBuffer> messages;
  while (std::optional<grpc::ByteBuffer> message = chunks.Next()) {
    messages.push_back(*std::move(message));
  }
  world_.network.SendDown(call.stream, std::move(messages));
}

std::string SimAggregator::State() const {
  std::string text = fmt::format("aggregator {}.{}{}: calls {} pushes {} composites {} bytes {}",
                                 group_, Value(shard_), is_dead() ? " dead" : "", calls_.size(),
                                 parts_.size(), sent_.size(), bytes_held_);
  for (const WorkerId worker : combiner_.WaitingFor()) {
    text += fmt::format(" waits for {}", Value(worker));
  }
  return text;
}

}  // namespace slipstream
