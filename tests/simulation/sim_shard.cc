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
#include "server/control_plane/coordinator_wire.h"
#include "server/control_plane/orders_wire.h"
#include "server/core/shard/shard_return.h"
#include "server/data_plane/chunked_answer.h"
#include "tests/simulation/trace_text.h"

namespace slipstream {
namespace {

constexpr size_t kAnswerChunkBytes = 512;
// The first of the seed's streams, one for each process of a server.
constexpr uint64_t kStreams = 1000;
constexpr uint64_t kRestoreStreams = 2000;
constexpr uint64_t kSaveStreams = 4000;
constexpr uint64_t kLogStreams = 5000;
constexpr uint32_t kRestoresPerMille = 50;

}  // namespace

SimShard::SimShard(ShardId shard, uint64_t number, const Scenario& scenario, bool restores,
                   SimDisk& disk, EventQueue& queue, Network& network, History& history,
                   Trace& trace, std::function<void()> on_failure)
    : id_(shard),
      saves_state_(scenario.run.durability.saves()),
      keeps_log_(scenario.run.durability.keeps_log()),
      directory_(scenario.run.durability.directory),
      restores_(restores),
      is_encoded_(scenario.run.wire.push_codec != Encoding::kFp32),
      update_time_max_(scenario.update_time_max),
      redo_time_max_(scenario.redo_time_max),
      log_options_({.time_max = scenario.log_time_max,
                    .seed = scenario.seed,
                    .stream = kLogStreams + number}),
      on_failure_(std::move(on_failure)),
      queue_(queue),
      network_(network),
      history_(history),
      trace_(trace),
      chance_(scenario.seed, kStreams + number),
      restore_chance_(scenario.seed, kRestoreStreams + number),
      disk_(disk),
      shard_({.shard = shard,
              .run = scenario.run,
              .memory_available = [] { return std::numeric_limits<uint64_t>::max(); }}),
      saves_({.shard = shard,
              .time_max = scenario.save_time_max,
              .keep = scenario.run.durability.keep,
              .seed = scenario.seed,
              .stream = kSaveStreams + number},
             process_, queue),
      sync_({.talk = {.shard = shard,
                      .address = scenario.run.cluster.servers[Value(shard)],
                      .instance = number + 1},
             .first_pause = chance_.Time(absl::ZeroDuration(), absl::Milliseconds(100)),
             .leave = [this](std::function<void()> report) { Leave(std::move(report)); }},
            process_, queue, network, *this) {}

void SimShard::OnOrders(const ServerOrders& orders) {
  trace_.Line("shard {} takes orders {}", Value(id_), TextOf(orders));
  orders_ = orders;
  const bool is_first = !generation_before_.has_value();
  if (is_first) {
    generation_before_ = Generation{};
    if (Value(id_) < orders.returns.size())
      generation_before_ = orders.returns[Value(id_)].generation;
  }
  saves_.SetSafe(orders.save.safe);
  if (orders.model.has_value()) saves_.SetModel(*orders.model);
  if (is_first && saves_state_) OpenDisk();
  // A shard that redoes its log takes the orders when it is back.
  if (!is_redoing_) TakeOrders();
}

void SimShard::TakeOrders() {
  if (const ShardReturn* order = FindReturn(orders_)) Return(*orders_.model, *order);
  ShardResult result = shard_.OnOrders(orders_);
  Show(OrdersTaken{id_, orders_.view, orders_.phase, orders_.stage});
  Absorb(std::move(result));
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
  Absorb(shard_.FinishPull(CallId{stream->number}, ReaderOf(pull)));
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
    return Send(call, {.push = std::move(refused->reply)});
  }
  auto* complete = std::get_if<PushFraming::Complete>(&outcome);
  if (complete == nullptr) return;
  const bool is_of_worker = !IsComposite(complete->push.header());
  if (values != nullptr && is_of_worker) NoteGradient(complete->push.header(), std::move(values));
  ShardResult result = shard_.FinishPush(CallId{call.stream->number}, complete->push);
  NotePush(call, result.record->header, result.record->reply);
  Absorb(std::move(result));
}

BegunPush SimShard::BeginPush(Call& call, const PushHeader& header) {
  call.push = header;
  BegunPush begun = shard_.BeginPush(header);
  if (begun.refusal.has_value()) NotePush(call, header, *begun.refusal);
  return begun;
}

void SimShard::OnPullMessage(Call& call, const grpc::ByteBuffer& message) {
  v1::PullRequest wire;
  PS_CHECK(DecodeWithValues(message, wire).ok());
  const absl::StatusOr<PullRequest> request = FromWire(wire);
  PS_CHECK(request.ok());
  call.pull = *request;
  // In another generation, the worker has yet to make its first push.
  if (request->min_generation != machine().generation()) call.pull->sequence = Sequence{1};
  const CallId id{call.stream->number};
  ShardResult result = shard_.Pull(id, *request);
  const bool is_refused = std::ranges::any_of(result.answers, [id](const Answer& answer) {
    return answer.call == id && !answer.refusal.ok();
  });
  if (request->trains && !is_refused) {
    Show(WeightsAsked{id_,
                      call.stream->number,
                      {request->min_generation, request->min_version},
                      *request->identity,
                      call.pull->sequence,
                      request->clock});
  }
  Absorb(std::move(result));
}

void SimShard::OnInitializeMessage(Call& call, const grpc::ByteBuffer& message) {
  absl::StatusOr<InitializeChunk> chunk = DecodeInitializeChunk(message);
  PS_CHECK(chunk.ok());
  if (absl::Status taken = TakeInitialChunk(call, *chunk); !taken.ok()) return End(call, taken);
  if (call.initial_received < call.initialize->count) return;
  Weights weights = std::move(call.initial);
  EndOnceSynced(call, shard_.FinishInitialize(*call.initialize, weights));
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
  while (decided_ < machine().decided()) {
    decided_ = Next(decided_);
    Show(UpdateOrdered{id_, machine().generation(), decided_});
  }
  NoteSave();
  // Its segment of the log has to be there before.
  if (result.save != nullptr) Leave([this, save = result.save] { saves_.Begin(save); });
  StartNextJob();
  MayRestore();
  for (Answer& answer : result.answers) OnAnswer(std::move(answer));
  for (const CallId lagged : result.lagged) {
    Leave([this, number = Value(lagged)] {
      if (const auto call = calls_.find(number); call != calls_.end()) {
        EndPull(call->second, LaggedError());
      }
    });
  }
}

void SimShard::NotePush(const Call& call, const PushHeader& header, const PushReply& reply) {
  if (!IsComposite(header)) return NoteOnePush(call, header, reply, /*is_later_part=*/false);
  for (const PushPart& part : header.parts) {
    NoteOnePush(call, HeaderOf(header, part), ReplyTo(reply, part), part != header.parts.front());
  }
}

void SimShard::NoteOnePush(const Call& call, const PushHeader& header, const PushReply& reply,
                           bool is_later_part) {
  const Identity& identity = header.identity;
  trace_.Line(
      "shard {} push worker {}#{} sequence {} base {} batches {}+{}: {} version {} lag {} {}",
      Value(id_), Value(identity.worker), Value(identity.incarnation), Value(header.sequence),
      Value(header.base), header.batches.empty() ? 0 : header.batches.front().first,
      CountOf(header.batches), Name(reply.outcome), Value(reply.version), reply.staleness,
      reply.message);
  Show(PushDecided{KeyOf(id_, header), reply, call.stream->number, header.clock, header.rests,
                   header.count > 0, header.pull, header.batches, is_later_part});
}

void SimShard::NoteGradient(const PushHeader& header, Values values) {
  Show(GradientArrived{KeyOf(id_, header), header.base, header.batches, std::move(values)});
}

void SimShard::StartNextJob() {
  while (shard_.has_job()) {
    auto job = std::make_shared<ShardJob>(shard_.TakeJob());
    const absl::Duration longest = job->makes_weights() ? update_time_max_ : absl::Microseconds(50);
    running_.push_back(job);
    queue_.After(chance_.Time(absl::Microseconds(1), longest), [this, job] {
      if (!process_->is_dead) FinishJob(job);
    });
  }
}

void SimShard::FinishJob(const std::shared_ptr<ShardJob>& finished) {
  const std::shared_ptr<ShardJob> kept = finished;  // `finished` may be an element of the list.
  // A return has not waited for the job's time.
  if (running_.remove(kept) == 0) return;
  ShardJob job = std::move(*kept);
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
  Show(VersionPublished{id_, machine().generation(), version,
                        std::make_shared<std::vector<float>>(values.begin(), values.end())});
  trace_.Line("shard {} published version {} of {} examples, rate {}", Value(id_), Value(version),
              machine().examples_applied(), machine().effective_learning_rate());
}

void SimShard::MayRestore() {
  if (!restores_ || !restore_chance_.Happens(kRestoresPerMille)) return;
  shard_.Restore(ShardState(machine().state()));
}

// Answers.

void SimShard::OnAnswer(Answer answer) {
  const auto found = calls_.find(Value(answer.call));
  if (found == calls_.end()) {
    history_.broken_rules.push_back(
        fmt::format("shard {}: answers call {}, which is gone", Value(id_), Value(answer.call)));
    return;
  }
  Call& call = found->second;
  if (!answer.refusal.ok()) {
    trace_.Line("shard {} refuses call {}: {}", Value(id_), Value(answer.call),
                answer.refusal.ToString());
    return EndOnceSynced(call, answer.refusal);
  }
  if (answer.header.has_value()) NoteServed(call, *answer.header);
  answer.Settle();
  Send(call, std::move(answer));
}

void SimShard::NoteServed(const Call& call, const WeightsHeader& weights) {
  trace_.Line("shard {} answers call {} with {}", Value(id_), call.stream->number, TextOf(weights));
  WeightsServed served = {
      .shard = id_, .call = call.stream->number, .version = {weights.generation, weights.version}};
  if (call.pull.has_value()) {
    served.asked = {call.pull->min_generation, call.pull->min_version};
    served.sequence = call.pull->sequence;
    if (call.pull->trains) served.trainer = call.pull->identity;
    return Show(served);
  }
  const auto note = [&](const PushHeader& push) {
    served.trainer = push.identity;
    served.sequence = Next(push.sequence);
    Show(served);
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
  Leave([this, stream = call.stream, messages = std::move(messages)] {
    if (calls_.contains(stream->number)) network_.SendDown(stream, messages);
  });
}

void SimShard::EndOnceSynced(const Call& call, const absl::Status& status) {
  Leave([this, number = call.stream->number, status] {
    if (const auto found = calls_.find(number); found != calls_.end()) End(found->second, status);
  });
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
