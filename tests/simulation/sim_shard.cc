#include "tests/simulation/sim_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/kernels/copy_values.h"
#include "common/wire/shard_wire.h"
#include "common/wire/values_codec.h"
#include "proto/coordinator.pb.h"
#include "proto/shard.pb.h"
#include "server/core/shard_core_options.h"
#include "server/service/chunked_answer.h"
#include "server/service/orders_wire.h"

namespace slipstream {
namespace {

constexpr size_t kAnswerChunkBytes = 512;
constexpr uint64_t kStreams = 1000;  // Of the seed, from here on: one of each shard.

// As of ServerSync.
constexpr absl::Duration kWait = absl::Milliseconds(250);
constexpr absl::Duration kWaitEager = absl::Milliseconds(20);
constexpr absl::Duration kPauseMin = absl::Milliseconds(100);
constexpr absl::Duration kPauseMax = absl::Seconds(2);

absl::Status ToStatus(Refuse::Reason reason) {
  switch (reason) {
    case Refuse::Reason::kWrongRun:
    case Refuse::Reason::kWrongShardMap:
    case Refuse::Reason::kFenced:
      return absl::FailedPreconditionError("refused");
    case Refuse::Reason::kNoModel:
    case Refuse::Reason::kUnknownMember:
    case Refuse::Reason::kTooManyParked:
      break;
  }
  return absl::UnavailableError("RETRY_LATER");
}

}  // namespace

SimShard::SimShard(ShardId shard, const Scenario& scenario, PlantedBug bug, EventQueue& queue,
                   Network& network, History& history, Trace& trace)
    : shard_(shard),
      scenario_(scenario),
      queue_(queue),
      network_(network),
      history_(history),
      trace_(trace),
      chance_(scenario.seed, kStreams + Value(shard)),
      core_(MakeShardDecider(ShardCoreOptions(scenario.run, shard), bug)),
      sync_pause_(kPauseMin) {
  queue_.After(chance_.Time(absl::ZeroDuration(), absl::Milliseconds(100)), [this] { Sync(); });
}

// The conversation with the coordinator.

void SimShard::Sync() {
  v1::SyncServerRequest request;
  request.set_shard(Value(shard_));
  request.set_address(scenario_.run.cluster.servers[Value(shard_)]);
  request.set_instance(Value(shard_) + 1);
  request.set_orders_seen(orders_.number);
  request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(NextWait())));
  request.set_initialized(orders_.grant != 0 && initialized_grant_ == orders_.grant);
  request.set_drained(core_->is_drained());
  request.mutable_status()->set_version(Value(core_->published()));
  request.mutable_status()->set_examples_applied(core_->examples_applied());
  for (const Member& member : orders_.view.members) {
    v1::ShardWorkerStatus& worker = *request.mutable_status()->add_workers();
    worker.set_worker(Value(member.worker));
    worker.set_incarnation(Value(member.incarnation));
    worker.set_newest_batch_end(core_->NewestBatchEnd(member.worker, member.incarnation));
  }
  network_.Call(Method::kSyncServer, request.SerializeAsString(), process_,
                [this](const absl::StatusOr<std::string>& reply) { OnSynced(reply); });
}

absl::Duration SimShard::NextWait() const {
  if (orders_.may_exit) return absl::ZeroDuration();
  const bool is_waited_for =
      orders_.phase == Phase::kInitializing || orders_.phase == Phase::kDraining;
  return is_waited_for ? kWaitEager : kWait;
}

void SimShard::OnSynced(const absl::StatusOr<std::string>& reply) {
  if (orders_.may_exit) return;
  if (!reply.ok()) {
    queue_.After(sync_pause_, [this] { Sync(); });
    sync_pause_ = std::min(sync_pause_ * 2, kPauseMax);
    return;
  }
  sync_pause_ = kPauseMin;
  v1::SyncServerReply wire;
  PS_CHECK(wire.ParseFromString(*reply));
  if (wire.orders() > orders_.number) {
    absl::StatusOr<ServerOrders> orders = FromWire(wire);
    PS_CHECK(orders.ok());
    OnOrders(*orders);
  }
  Sync();
}

void SimShard::OnOrders(const ServerOrders& orders) {
  trace_.Line("shard {} takes orders {} phase {} view {} of {}", Value(shard_), orders.number,
              static_cast<int>(orders.phase), Value(orders.view.number),
              orders.view.members.size());
  orders_ = orders;
  TakeModel(orders);
  history_.Add(ViewTaken{shard_, orders.view});
  Absorb(core_->OnView(orders.view));
  history_.Add(PhaseTaken{shard_, orders.phase});
  Absorb(core_->OnPhase(orders.phase, orders.drain_version));
  if (orders.ends_work) Absorb(core_->OnWorkEnds());
}

void SimShard::TakeModel(const ServerOrders& orders) {
  if (!orders.model.has_value() || core_->has_plan()) return;
  const ParameterRange range = orders.model->shard_map.range(shard_);
  core_->SetPlan({.run = orders.run,
                  .shard_map = orders.model->shard_map.fingerprint(),
                  .count = range.size(),
                  .batches_total = orders.model->batches_total,
                  .examples_per_epoch = orders.model->examples_per_epoch});
  path_ = UpdatePath::TryMake(scenario_.run.optimizer, range.size());
  PS_CHECK(path_ != nullptr);
}

// Calls.

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
  if (gone.ticket.has_value()) {
    core_->OnCancelled(*gone.ticket);
    parked_.erase(*gone.ticket);
  }
  if (gone.assembly.has_value()) {
    core_->ReleaseBytes(gone.assembly->header().count * sizeof(float));
  }
  if (gone.is_pinning) Absorb(core_->OnPullDone(gone.reader));
}

void SimShard::OnSent(const StreamPtr& stream) {
  const auto found = calls_.find(stream->number);
  if (found == calls_.end() || !found->second.is_pinning) return;
  const ShardCore::Reader reader = found->second.reader;
  End(found->second, absl::OkStatus());
  Absorb(core_->OnPullDone(reader));
}

void SimShard::End(const Call& call, const absl::Status& status) {
  const StreamPtr stream = call.stream;
  calls_.erase(stream->number);
  network_.Finish(stream, status);
}

PushKey SimShard::KeyOf(const PushHeader& header) const {
  return {shard_, header.identity.worker, header.identity.incarnation, header.sequence};
}

void SimShard::OnPushMessage(Call& call, const grpc::ByteBuffer& message) {
  absl::StatusOr<PushChunk> chunk = DecodePushChunk(message);
  PS_CHECK(chunk.ok());
  if (chunk->header.has_value()) BeginPush(call, *chunk->header);
  if (call.refusal.has_value()) {
    PS_CHECK(chunk->values.count() <= call.values_to_discard);
    call.values_to_discard -= chunk->values.count();
    if (call.values_to_discard > 0) return;
    Parked parked = {.stream = call.stream->number, .push = *std::exchange(call.refusal, {})};
    return Answer(call, parked, Version{}, std::nullopt);
  }
  PS_CHECK(call.assembly.has_value());
  PS_CHECK(call.assembly->Add(chunk->offset, std::move(chunk->values)).ok());
  if (call.assembly->is_complete()) FinishPush(call);
}

void SimShard::BeginPush(Call& call, const PushHeader& header) {
  PS_CHECK(!call.assembly.has_value() && !call.refusal.has_value());
  call.push = header;
  call.refusal = core_->OnPushHeader(header);
  if (call.refusal.has_value()) {
    history_.Add(PushDecided{KeyOf(header), *call.refusal});
    call.values_to_discard = header.count;
  } else {
    call.assembly.emplace(header);
  }
}

void SimShard::FinishPush(Call& call) {
  PushAssembly push = *std::exchange(call.assembly, {});
  const ShardCore::PushFacts facts = push.Facts();
  PushDecision decision = core_->OnPush(facts);
  if (decision.retained.has_value()) {
    held_.emplace(*decision.retained, push.TakePayload());
  } else {
    core_->ReleaseBytes(facts.header.count * sizeof(float));
  }
  const PushHeader& header = facts.header;
  trace_.Line("shard {} push worker {}#{} sequence {} base {} batch {}: {} version {} lag {}",
              Value(shard_), Value(header.identity.worker), Value(header.identity.incarnation),
              Value(header.sequence), Value(header.base), header.batch,
              Name(decision.reply.outcome), Value(decision.reply.version),
              decision.reply.staleness);
  history_.Add(PushDecided{KeyOf(header), decision.reply});
  const uint64_t stream = call.stream->number;
  Absorb(decision.effects);
  Call& answered = calls_.at(stream);
  Parked parked = {.stream = stream, .push = decision.reply};
  if (!decision.answer.has_value()) return Answer(answered, parked, Version{}, std::nullopt);
  parked.wants_weights = header.pull;
  AnswerNow(answered, *decision.answer, std::move(parked));
}

void SimShard::OnPullMessage(Call& call, const grpc::ByteBuffer& message) {
  v1::PullRequest wire;
  PS_CHECK(DecodeWithValues(message, wire).ok());
  const absl::StatusOr<PullRequest> request = FromWire(wire);
  PS_CHECK(request.ok());
  call.pull = *request;
  call.reader = ShardCore::ReaderOf(*request);
  const PullDecision decision = core_->OnPull(*request);
  const Parked parked = {.stream = call.stream->number, .wants_weights = true};
  if (const auto* refusal = std::get_if<Refuse>(&decision.outcome)) {
    End(call, ToStatus(refusal->reason));
  } else if (const auto* serve = std::get_if<Serve>(&decision.outcome)) {
    AnswerNow(call, *serve, parked);
  } else {
    AnswerNow(call, std::get<Park>(decision.outcome), parked);
  }
  Absorb(decision.effects);
}

void SimShard::OnInitializeMessage(Call& call, const grpc::ByteBuffer& message) {
  absl::StatusOr<InitializeChunk> chunk = DecodeInitializeChunk(message);
  PS_CHECK(chunk.ok());
  if (absl::Status taken = TakeInitialChunk(call, *chunk); !taken.ok()) return End(call, taken);
  if (call.initial_received < call.initialize->count) return;
  absl::Status status = CheckInitializer(*call.initialize);
  if (status.ok() && initialized_grant_ != call.initialize->grant) {
    initialized_grant_ = call.initialize->grant;
    jobs_.push_back({.initial = std::move(call.initial)});
    StartNextJob();
  }
  End(call, status);
}

absl::Status SimShard::TakeInitialChunk(Call& call, const InitializeChunk& chunk) {
  if (chunk.header.has_value()) {
    if (absl::Status status = CheckInitializer(*chunk.header); !status.ok()) return status;
    call.initialize = chunk.header;
    call.initial = path_->NewWeights();
  }
  PS_CHECK(call.initialize.has_value() && chunk.offset == call.initial_received);
  const size_t count = chunk.values.count();
  CopyValues(chunk.values.segments(), call.initial->values().subspan(chunk.offset, count));
  call.initial_received += count;
  return absl::OkStatus();
}

absl::Status SimShard::CheckInitializer(const InitializeHeader& header) const {
  if (!core_->has_plan() || orders_.grant == 0 || header.grant > orders_.grant) {
    return absl::UnavailableError("the grant is on its way");
  }
  if (header.shard_map != orders_.model->shard_map.fingerprint() || header.grant < orders_.grant ||
      header.identity != orders_.initializer || orders_.phase > Phase::kInitializing) {
    return absl::FailedPreconditionError("not granted");
  }
  return absl::OkStatus();
}

// Decisions.

void SimShard::AnswerNow(Call& call, const std::variant<Serve, Park>& outcome, Parked parked) {
  if (const auto* park = std::get_if<Park>(&outcome)) {
    call.ticket = park->ticket;
    parked_.emplace(park->ticket, std::move(parked));
    return;
  }
  const auto& serve = std::get<Serve>(outcome);
  Answer(call, parked, serve.version, serve.work);
}

void SimShard::Answer(Call& call, const Parked& parked, Version version,
                      const std::optional<RoundWork>& work) {
  slipstream::Answer answer = {.push = parked.push};
  if (parked.wants_weights) {
    PS_CHECK(published_ != nullptr && version == core_->published());
    answer.weights = ServedWeights{{version, published_->values().size(), work}, published_};
    WeightsServed served = {shard_, version, Version{}, std::nullopt};
    if (call.pull.has_value()) {
      served.asked = call.pull->min_version;
      if (call.pull->trains) served.trainer = call.pull->identity;
    } else {
      served.trainer = call.push->identity;
    }
    history_.Add(served);
  }
  const bool is_pull = call.stream->kind == StreamKind::kPull;
  call.is_pinning = is_pull;
  ChunkedAnswer chunks(is_pull ? ChunkedAnswer::Form::kWeights : ChunkedAnswer::Form::kExchange,
                       std::move(answer), kAnswerChunkBytes);
  std::vector<grpc::ByteBuffer> messages;
  while (std::optional<grpc::ByteBuffer> message = chunks.Next()) {
    messages.push_back(*std::move(message));
  }
  network_.SendDown(call.stream, std::move(messages));
}

void SimShard::Absorb(const Effects& effects) {
  UpdateJob work;
  for (const Fold& fold : effects.folds) {
    auto held = held_.extract(fold.push);
    PS_CHECK(!held.empty());
    work.folds.push_back({fold, std::move(held.mapped())});
  }
  work.update = effects.update;
  if (work.update.has_value()) history_.Add(UpdateOrdered{shard_, work.update->to});
  if (!work.folds.empty() || work.update.has_value()) {
    jobs_.push_back({.work = std::move(work)});
    StartNextJob();
  }
  for (const Release& release : effects.released) {
    const auto parked = parked_.extract(release.ticket);
    if (parked.empty()) {
      history_.broken_rules.push_back(fmt::format("shard {}: releases ticket {}, which nobody has",
                                                  Value(shard_), Value(release.ticket)));
      continue;
    }
    Call& call = calls_.at(parked.mapped().stream);
    call.ticket.reset();
    Answer(call, parked.mapped(), release.version, release.work);
  }
}

void SimShard::StartNextJob() {
  if (is_working_ || jobs_.empty()) return;
  is_working_ = true;
  const absl::Duration longest =
      jobs_.front().makes_weights() ? scenario_.update_time_max : absl::Microseconds(50);
  queue_.After(chance_.Time(absl::Microseconds(1), longest), [this] { FinishJob(); });
}

void SimShard::FinishJob() {
  ShardJob job = std::move(jobs_.front());
  jobs_.pop_front();
  core_->ReleaseBytes(job.payload_bytes());
  const std::optional<Version> updated = job.version();
  std::optional<Weights> made = std::move(job).Run(*path_);
  is_working_ = false;
  if (made.has_value()) {
    published_ = *std::move(made);
    const Version version = updated.value_or(core_->published());
    const std::span<const float> values = published_->values();
    history_.Add(VersionPublished{
        shard_, version, std::make_shared<std::vector<float>>(values.begin(), values.end())});
    trace_.Line("shard {} published version {}", Value(shard_), Value(version));
    if (updated.has_value()) {
      Absorb(core_->OnPublished(version));
    } else if (!core_->is_initialized()) {
      Absorb(core_->OnInitialized());
    }
  }
  StartNextJob();
}

ShardEnd SimShard::End() const {
  const LagTracker& lag = core_->lag();
  ShardEnd end = {.published = core_->published(),
                  .parked_tickets = core_->parked(),
                  .calls_waiting = parked_.size(),
                  .payloads_held = held_.size(),
                  .bytes_queued = core_->bytes_queued(),
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
  return fmt::format("shard {}: published {} parked {} held {} bytes {} calls {} phase {} view {}",
                     Value(shard_), Value(core_->published()), core_->parked(), held_.size(),
                     core_->bytes_queued(), calls_.size(), static_cast<int>(orders_.phase),
                     Value(orders_.view.number));
}

}  // namespace slipstream
