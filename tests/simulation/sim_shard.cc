#include "tests/simulation/sim_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/base/encoding.h"
#include "common/kernels/copy_values.h"
#include "common/protocol/composite_push.h"
#include "common/wire/shard_wire.h"
#include "common/wire/values_codec.h"
#include "proto/shard.pb.h"
#include "server/core/shard_return.h"
#include "server/service/chunked_answer.h"
#include "server/service/coordinator_wire.h"
#include "server/service/orders_wire.h"

namespace slipstream {
namespace {

constexpr size_t kAnswerChunkBytes = 512;
// The first of the seed's streams, one for each process of a server.
constexpr uint64_t kStreams = 1000;
constexpr uint64_t kRestoreStreams = 2000;
constexpr uint64_t kSaveStreams = 4000;
constexpr uint32_t kRestoresPerMille = 50;

}  // namespace

SimShard::SimShard(ShardId shard, uint64_t number, const Scenario& scenario, bool restores,
                   SimCheckpoints& disk, EventQueue& queue, Network& network, History& history,
                   Trace& trace)
    : id_(shard),
      saves_state_(scenario.run.durability.saves()),
      restores_(restores),
      is_encoded_(scenario.run.wire.push_codec != Encoding::kFp32),
      update_time_max_(scenario.update_time_max),
      queue_(queue),
      network_(network),
      history_(history),
      trace_(trace),
      chance_(scenario.seed, kStreams + number),
      restore_chance_(scenario.seed, kRestoreStreams + number),
      shard_({.shard = shard,
              .run = scenario.run,
              .memory_available = [] { return std::numeric_limits<uint64_t>::max(); }}),
      disk_(disk),
      saves_({.time_max = scenario.save_time_max,
              .keep = scenario.run.durability.keep,
              .seed = scenario.seed,
              .stream = kSaveStreams + number},
             process_, queue, disk),
      sync_({.shard = shard,
             .address = scenario.run.cluster.servers[Value(shard)],
             .instance = number + 1,
             .first_pause = chance_.Time(absl::ZeroDuration(), absl::Milliseconds(100))},
            process_, queue, network, *this) {}

void SimShard::Kill() {
  trace_.Line("the server of shard {} is killed", Value(id_));
  process_->is_dead = true;
  history_.Add(ServerKilled{id_});
  for (const auto& [number, call] : calls_) {
    network_.Finish(call.stream, absl::UnavailableError("the server is gone"));
  }
  calls_.clear();
}

void SimShard::Describe(v1::SyncServerRequest& request) {
  request.set_initialized(machine().has_granted_weights());
  request.set_drained(IsDrained());
  *request.mutable_progress() = ProgressOf(machine());
  request.set_life(Value(machine().state().life));
  // Before the first orders, the process does not know which run it serves.
  request.set_knows_saved(life_before_.has_value());
  if (!life_before_.has_value()) return;
  for (const SavedVersion& saved : disk_.saved()) *request.add_saved() = ToWire(saved);
}

bool SimShard::IsDrained() const {
  if (!machine().is_drained() || !saves_state_) return machine().is_drained();
  // As ShardEngine: what is measured next must not be lost.
  const std::vector<SavedVersion> saved = disk_.saved();
  return std::ranges::any_of(saved, [this](const SavedVersion& each) {
    return each.life == machine().life() && each.version == machine().decided();
  });
}

// Checkpoints.

const ShardReturn* SimShard::FindReturn(const ServerOrders& orders) const {
  if (!orders.model.has_value() || Value(id_) >= orders.returns.size()) return nullptr;
  const ShardReturn& order = orders.returns[Value(id_)];
  const Life life = std::max(machine().state().life, *life_before_);
  const bool is_news = order.life > life && disk_.Find(order.from) != nullptr;
  return is_news ? &order : nullptr;
}

void SimShard::Return(const ModelOrders& model, const ShardReturn& order) {
  trace_.Line("shard {} goes on from life {} version {} in life {}", Value(id_),
              Value(order.from.life), Value(order.from.version), Value(order.life));
  EndAllCalls();
  PS_CHECK(shard_.BeginReturn().deliveries.empty());
  while (!running_.empty()) FinishJob(running_.front());
  saves_.GiveUp();
  const SimCheckpoint& from = *disk_.Find(order.from);
  absl::StatusOr<ShardState> state = DecodeShardState(from.state);
  PS_CHECK(state.ok());
  auto arrays = shard_.NewArrays(model);
  PS_CHECK(arrays.size() == from.values.arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    std::ranges::copy(from.values.arrays[i].second->values(), arrays[i].second->values().begin());
  }
  shard_.Return({*std::move(state), from.values}, std::move(arrays), order.life);
  last_saved_ = machine().state().last_saved;
  machine().CheckInvariants();
  decided_ = machine().decided();
  disk_.RemoveAfter(order.from);
  const std::span<const float> values = shard_.weights()->values();
  history_.Add(ShardReturned{id_, order.life, order.from,
                             std::make_shared<std::vector<float>>(values.begin(), values.end())});
}

void SimShard::EndAllCalls() {
  const absl::Status status = absl::UnavailableError("RETRY_LATER: the shard is to return");
  // Calls that wait come first, as the end of another one would answer them.
  for (const auto& [number, call] : calls_) shard_.Cancel(CallId{number});
  while (!calls_.empty()) {
    Call& call = calls_.begin()->second;
    if (const auto push = call.pushes.Abandon()) shard_.AbandonPush(*push);
    if (call.is_pinning) {
      EndPull(call, status);
    } else {
      End(call, status);
    }
  }
}

void SimShard::NoteSave() {
  const ShardState& state = machine().state();
  if (state.last_saved == last_saved_) return;
  last_saved_ = state.last_saved;
  if (!last_saved_.has_value()) return;
  const SavedVersion saved = {state.life, state.decided, state.stage};
  trace_.Line("shard {} saves life {} version {}", Value(id_), Value(saved.life),
              Value(saved.version));
  history_.Add(SaveBegun{id_, saved});
}

void SimShard::OnOrders(const ServerOrders& orders) {
  trace_.Line("shard {} takes orders {} phase {} view {} of {}", Value(id_), orders.number,
              static_cast<int>(orders.phase), Value(orders.view.number),
              orders.view.members.size());
  if (!life_before_.has_value()) {
    life_before_ = Life{};
    if (Value(id_) < orders.returns.size()) life_before_ = orders.returns[Value(id_)].life;
  }
  saves_.SetSafe(orders.save.safe);
  if (const ShardReturn* order = FindReturn(orders)) Return(*orders.model, *order);
  history_.Add(OrdersTaken{id_, orders.view, orders.phase, orders.stage});
  Absorb(shard_.OnOrders(orders));
  PS_CHECK(shard_.failure().empty());
}

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
  Call& gone = call.mapped();
  shard_.Cancel(CallId{stream->number});
  if (const auto push = gone.pushes.Abandon()) shard_.AbandonPush(*push);
  MayRestore();
  if (gone.is_pinning) FinishPull(stream, *gone.pull);
}

void SimShard::OnSent(const StreamPtr& stream) {
  const auto found = calls_.find(stream->number);
  if (found == calls_.end() || !found->second.is_pinning) return;
  EndPull(found->second, absl::OkStatus());
}

void SimShard::FinishPull(const StreamPtr& stream, const PullRequest& pull) {
  Absorb(shard_.FinishPull(CallId{stream->number}, ShardMachine::ReaderOf(pull)));
}

void SimShard::EndPull(const Call& call, const absl::Status& status) {
  const StreamPtr stream = call.stream;
  const PullRequest pull = *call.pull;
  End(call, status);  // The call is gone.
  FinishPull(stream, pull);
}

// Messages of a call.

void SimShard::OnPushMessage(Call& call, const grpc::ByteBuffer& message) {
  absl::StatusOr<PushChunk> chunk = DecodePushChunk(message);
  PS_CHECK(chunk.ok());
  std::shared_ptr<std::vector<float>> values;
  if (is_encoded_ && chunk->values.count() > 0) {
    values = std::make_shared<std::vector<float>>(chunk->values.count());
    CopyValues(chunk->values.segments(), *values);
  }
  PushFraming::Outcome outcome =
      call.pushes.OnChunk(*std::move(chunk), std::nullopt,
                          [&](const PushHeader& header) { return BeginPush(call, header); });
  MayRestore();
  if (auto* refused = std::get_if<PushFraming::Refused>(&outcome)) {
    PS_CHECK(!refused->ends_stream);
    return Send(call, {.push = std::move(refused->reply), .weights = std::nullopt});
  }
  auto* complete = std::get_if<PushFraming::Complete>(&outcome);
  if (complete == nullptr) return;
  const bool is_of_worker = !IsComposite(complete->push.header());
  if (values != nullptr && is_of_worker) NoteGradient(complete->push.header(), std::move(values));
  Absorb(shard_.FinishPush(CallId{call.stream->number}, complete->push));
}

BegunPush SimShard::BeginPush(Call& call, const PushHeader& header) {
  call.push = header;
  BegunPush begun = shard_.BeginPush(header);
  if (begun.refusal.has_value()) NotePush(header, *begun.refusal);
  return begun;
}

void SimShard::OnPullMessage(Call& call, const grpc::ByteBuffer& message) {
  v1::PullRequest wire;
  PS_CHECK(DecodeWithValues(message, wire).ok());
  const absl::StatusOr<PullRequest> request = FromWire(wire);
  PS_CHECK(request.ok());
  call.pull = *request;
  // In a later life, the worker has yet to make its first push.
  if (request->min_life < machine().state().life) call.pull->sequence = Sequence{1};
  if (request->trains) {
    history_.Add(WeightsAsked{id_,
                              {request->min_life, request->min_version},
                              *request->identity,
                              call.pull->sequence,
                              request->clock});
  }
  Absorb(shard_.Pull(CallId{call.stream->number}, *request));
}

void SimShard::OnInitializeMessage(Call& call, const grpc::ByteBuffer& message) {
  absl::StatusOr<InitializeChunk> chunk = DecodeInitializeChunk(message);
  PS_CHECK(chunk.ok());
  if (absl::Status taken = TakeInitialChunk(call, *chunk); !taken.ok()) return End(call, taken);
  if (call.initial_received < call.initialize->count) return;
  Weights weights = std::move(call.initial);
  End(call, shard_.FinishInitialize(*call.initialize, weights));
  StartNextJob();
}

absl::Status SimShard::TakeInitialChunk(Call& call, const InitializeChunk& chunk) {
  if (chunk.header.has_value()) {
    absl::StatusOr<std::shared_ptr<FloatBuffer>> buffer = shard_.BeginInitialize(*chunk.header);
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

// Effects of an event.

void SimShard::Absorb(ShardResult result) {
  machine().CheckInvariants();
  if (result.record.has_value()) NotePush(result.record->header, result.record->reply);
  while (decided_ < machine().decided()) {
    decided_ = Next(decided_);
    history_.Add(UpdateOrdered{id_, machine().state().life, decided_});
  }
  NoteSave();
  if (result.save != nullptr) saves_.Begin(*result.save);
  StartNextJob();
  MayRestore();
  for (const Delivery& delivery : result.deliveries) OnAnswer(delivery);
  for (const CallId lagged : result.lagged) {
    if (const auto call = calls_.find(Value(lagged)); call != calls_.end()) {
      EndPull(call->second, LaggedError());
    }
  }
}

void SimShard::NotePush(const PushHeader& header, const PushReply& reply) {
  if (!IsComposite(header)) return NoteOnePush(header, reply, /*is_later_part=*/false);
  for (const PushPart& part : header.parts) {
    NoteOnePush(HeaderOf(header, part), ReplyTo(reply, part), part != header.parts.front());
  }
}

void SimShard::NoteOnePush(const PushHeader& header, const PushReply& reply, bool is_later_part) {
  const Identity& identity = header.identity;
  trace_.Line("shard {} push worker {}#{} sequence {} base {} batches {}+{}: {} version {} lag {}",
              Value(id_), Value(identity.worker), Value(identity.incarnation),
              Value(header.sequence), Value(header.base),
              header.batches.empty() ? 0 : header.batches.front().first, CountOf(header.batches),
              Name(reply.outcome), Value(reply.version), reply.staleness);
  history_.Add(PushDecided{KeyOf(id_, header), reply, header.clock, header.rests, header.count > 0,
                           header.pull, header.batches, is_later_part});
}

void SimShard::NoteGradient(const PushHeader& header, Values values) {
  history_.Add(GradientArrived{KeyOf(id_, header), header.base, header.batches, std::move(values)});
}

void SimShard::StartNextJob() {
  while (shard_.has_job()) {
    auto job = std::make_shared<Shard::Job>(shard_.TakeJob());
    const absl::Duration longest = job->makes_weights() ? update_time_max_ : absl::Microseconds(50);
    running_.push_back(job);
    queue_.After(chance_.Time(absl::Microseconds(1), longest), [this, job] {
      if (!process_->is_dead) FinishJob(job);
    });
  }
}

void SimShard::FinishJob(const std::shared_ptr<Shard::Job>& finished) {
  const std::shared_ptr<Shard::Job> kept = finished;  // `finished` may be an element of the list.
  // A return has not waited for the job's time.
  if (running_.remove(kept) == 0) return;
  Shard::Job job = std::move(*kept);
  const bool makes_weights = job.makes_weights();
  const bool had_weights = shard_.weights() != nullptr;
  const Version before = machine().published();
  job.Run();
  ShardResult result = shard_.FinishJob(std::move(job));
  if (makes_weights) {
    // Initial weights may come again; they are no new version.
    const bool is_initial = !had_weights || machine().decided() == Version{};
    for (Version v = is_initial ? Version{} : Next(before); v <= machine().published();
         v = Next(v)) {
      NotePublished(v);
    }
  }
  Absorb(std::move(result));
}

void SimShard::NotePublished(Version version) {
  const std::shared_ptr<InPlaceWeights>& in_place = shard_.training_state()->in_place();
  const Weights weights = in_place == nullptr ? shard_.weights() : in_place->Copy();
  const std::span<const float> values = weights->values();
  history_.Add(
      VersionPublished{id_, machine().state().life, version,
                       std::make_shared<std::vector<float>>(values.begin(), values.end())});
  trace_.Line("shard {} published version {}", Value(id_), Value(version));
}

void SimShard::MayRestore() {
  if (!restores_ || !restore_chance_.Happens(kRestoresPerMille)) return;
  shard_.Restore(ShardState(machine().state()));
}

// Answers.

void SimShard::OnAnswer(const Delivery& delivery) {
  const auto found = calls_.find(Value(delivery.call));
  if (found == calls_.end()) {
    history_.broken_rules.push_back(
        fmt::format("shard {}: answers call {}, which is gone", Value(id_), Value(delivery.call)));
    return;
  }
  Call& call = found->second;
  if (!delivery.answer.ok()) return End(call, delivery.answer.status());
  if (delivery.answer->weights.has_value()) NoteServed(call, *delivery.answer->weights);
  Answer answer = *delivery.answer;
  answer.Settle();
  Send(call, std::move(answer));
}

void SimShard::NoteServed(const Call& call, const ServedWeights& weights) {
  WeightsServed served = {.shard = id_, .version = {weights.header.life, weights.header.version}};
  if (call.pull.has_value()) {
    served.asked = {call.pull->min_life, call.pull->min_version};
    served.sequence = call.pull->sequence;
    if (call.pull->trains) served.trainer = call.pull->identity;
    return history_.Add(served);
  }
  const auto note = [&](const PushHeader& push) {
    served.trainer = push.identity;
    served.sequence = Next(push.sequence);
    history_.Add(served);
  };
  if (!IsComposite(*call.push)) return note(*call.push);
  for (const PushPart& part : call.push->parts) {
    if (part.pull) note(HeaderOf(*call.push, part));
  }
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

// Reports for the checkers and for people.

ShardEnd SimShard::End() const {
  const LagTracker& lag = machine().lag();
  ShardEnd end = {.has_weights = machine().is_initialized(),
                  .published = machine().published(),
                  .calls_waiting = machine().waiting(),
                  .payloads_held = shard_.payloads_held(),
                  .bytes_queued = machine().bytes_queued(),
                  .gradients = lag.gradients(),
                  .mean_staleness = lag.mean(),
                  .window_mean = lag.window_mean(),
                  .histogram = lag.histogram()};
  for (const LagTracker::VectorClock& clock : lag.vector_clocks()) {
    end.clocks.push_back(clock.bases);
    end.clock_means.push_back(clock.mean_staleness);
  }
  return end;
}

std::string SimShard::Describe() const {
  return fmt::format("shard {}: published {} waiting {} held {} bytes {} phase {} view {} calls {}",
                     Value(id_), Value(machine().published()), machine().waiting(),
                     shard_.payloads_held(), machine().bytes_queued(),
                     static_cast<int>(machine().phase()), Value(machine().view().number),
                     calls_.size());
}

}  // namespace slipstream
