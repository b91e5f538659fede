#include "tests/simulation/sim_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "server/core/shard_core_options.h"

namespace slipstream {
namespace {

absl::Status ToStatus(Refuse::Reason reason) {
  switch (reason) {
    case Refuse::Reason::kWrongRun:
    case Refuse::Reason::kWrongShardMap:
    case Refuse::Reason::kFenced:
      return absl::FailedPreconditionError("refused");
    case Refuse::Reason::kOutOfSequence:
    case Refuse::Reason::kNoSuchSlot:
      return absl::InvalidArgumentError("refused");
    case Refuse::Reason::kNoModel:
    case Refuse::Reason::kUnknownMember:
    case Refuse::Reason::kTooManyParked:
      break;
  }
  return absl::UnavailableError("RETRY_LATER");
}

}  // namespace

SimEngine::SimEngine(ShardId shard, const Scenario& scenario, PlantedBug bug, EventQueue& queue,
                     Chance& chance, History& history, Trace& trace, OnAnswer on_answer)
    : shard_(shard),
      scenario_(scenario),
      queue_(queue),
      chance_(chance),
      history_(history),
      trace_(trace),
      on_answer_(std::move(on_answer)),
      core_(MakeShardDecider(ShardCoreOptions(scenario.run, shard), bug)) {}

// Orders.

void SimEngine::OnOrders(const ServerOrders& orders) {
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

void SimEngine::TakeModel(const ServerOrders& orders) {
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

// Initial weights.

absl::Status SimEngine::CheckInitializer(const InitializeHeader& header) const {
  if (!core_->has_plan() || orders_.grant == 0 || header.grant > orders_.grant) {
    return absl::UnavailableError("the grant is on its way");
  }
  if (header.shard_map != orders_.model->shard_map.fingerprint() || header.grant < orders_.grant ||
      header.identity != orders_.initializer || orders_.phase > Phase::kInitializing) {
    return absl::FailedPreconditionError("not granted");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<FloatBuffer>> SimEngine::BeginInitialize(
    const InitializeHeader& header) {
  if (absl::Status status = CheckInitializer(header); !status.ok()) return status;
  return path_->NewWeights();
}

absl::Status SimEngine::FinishInitialize(const InitializeHeader& header, Weights weights) {
  if (absl::Status status = CheckInitializer(header); !status.ok()) return status;
  if (initialized_grant_ == header.grant) return absl::OkStatus();  // A repetition.
  initialized_grant_ = header.grant;
  jobs_.push_back({.initial = std::move(weights)});
  StartNextJob();
  return absl::OkStatus();
}

// Pulls and pushes.

void SimEngine::Pull(uint64_t stream, const PullRequest& request) {
  const PullDecision decision = core_->OnPull(request);
  const Parked parked = {.stream = stream, .wants_weights = true};
  if (const auto* refusal = std::get_if<Refuse>(&decision.outcome)) {
    on_answer_(stream, ToStatus(refusal->reason));
  } else if (const auto* serve = std::get_if<Serve>(&decision.outcome)) {
    AnswerNow(*serve, parked);
  } else {
    AnswerNow(std::get<Park>(decision.outcome), parked);
  }
  Absorb(decision.effects);
}

void SimEngine::FinishPull(ShardCore::Reader reader) { Absorb(core_->OnPullDone(reader)); }

PushKey SimEngine::KeyOf(const PushHeader& header) const {
  return {shard_, header.identity.worker, header.identity.incarnation, header.sequence};
}

std::optional<PushReply> SimEngine::BeginPush(const PushHeader& header) {
  std::optional<PushReply> refusal = core_->OnPushHeader(header);
  if (refusal.has_value()) history_.Add(PushDecided{KeyOf(header), *refusal});
  return refusal;
}

void SimEngine::AbandonPush(const PushHeader& header) { core_->OnPushAbandoned(header); }

void SimEngine::FinishPush(uint64_t stream, PushAssembly push) {
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
  Absorb(decision.effects);
  if (!decision.answer.has_value()) return on_answer_(stream, Answer{.push = decision.reply});
  AnswerNow(*decision.answer,
            {.stream = stream, .push = decision.reply, .wants_weights = header.pull});
}

void SimEngine::Cancel(uint64_t stream) {
  const auto parked = std::ranges::find_if(
      parked_, [stream](const auto& waiting) { return waiting.second.stream == stream; });
  if (parked == parked_.end()) return;
  core_->OnCancelled(parked->first);
  parked_.erase(parked);
}

void SimEngine::AnswerNow(const std::variant<Serve, Park>& outcome, const Parked& parked) {
  if (const auto* park = std::get_if<Park>(&outcome)) {
    parked_.emplace(park->ticket, parked);
    return;
  }
  const auto& serve = std::get<Serve>(outcome);
  Give(parked, serve.version, serve.work);
}

void SimEngine::Give(const Parked& parked, Version version, const std::optional<RoundWork>& work) {
  Answer answer = {.push = parked.push};
  if (parked.wants_weights) {
    PS_CHECK(published_ != nullptr && version == core_->published());
    answer.weights = ServedWeights{{version, published_->values().size(), work}, published_};
  }
  on_answer_(parked.stream, std::move(answer));
}

// What the core orders.

void SimEngine::Absorb(const Effects& effects) {
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
    Give(parked.mapped(), release.version, release.work);
  }
}

void SimEngine::StartNextJob() {
  if (is_working_ || jobs_.empty()) return;
  is_working_ = true;
  const ShardJob& job = jobs_.front();
  const bool makes_weights = job.initial.has_value() || job.work.update.has_value();
  const absl::Duration longest = makes_weights ? scenario_.update_time_max : absl::Microseconds(50);
  queue_.After(chance_.Time(absl::Microseconds(1), longest), [this] { FinishJob(); });
}

void SimEngine::FinishJob() {
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

// For the checkers, and for people.

ShardEnd SimEngine::End() const {
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

std::string SimEngine::Describe() const {
  return fmt::format("shard {}: published {} parked {} held {} bytes {} phase {} view {}",
                     Value(shard_), Value(core_->published()), core_->parked(), held_.size(),
                     core_->bytes_queued(), static_cast<int>(orders_.phase),
                     Value(orders_.view.number));
}

}  // namespace slipstream
