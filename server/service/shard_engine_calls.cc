#include <utility>

#include "common/base/check.h"
#include "server/service/shard_engine.h"

// The calls: pulls and pushes, answered at once or parked.

namespace slipstream {
namespace {

absl::Status ToStatus(Refuse::Reason reason) {
  switch (reason) {
    case Refuse::Reason::kNoModel:
      return absl::UnavailableError("RETRY_LATER: no client has named the model yet");
    case Refuse::Reason::kWrongRun:
      return absl::FailedPreconditionError("WRONG_RUN: this shard serves another run");
    case Refuse::Reason::kWrongShardMap:
      return absl::FailedPreconditionError("WRONG_SHARD_MAP: the model was cut by another map");
    case Refuse::Reason::kFenced:
      return absl::FailedPreconditionError("FENCED: this incarnation is not a member any more");
    case Refuse::Reason::kUnknownMember:
      return absl::UnavailableError("RETRY_LATER: the view that has this member is on its way");
    case Refuse::Reason::kOutOfSequence:
      return absl::InvalidArgumentError("sequence: later than the push that is expected next");
    case Refuse::Reason::kNoSuchSlot:
      return absl::InvalidArgumentError(
          "slot: beyond the gradients that a worker may have under way");
    case Refuse::Reason::kTooManyParked:
      break;
  }
  return absl::UnavailableError("RETRY_LATER: too many pulls wait already");
}

}  // namespace

absl::StatusOr<std::optional<Answer>> ShardEngine::Pull(const PullRequest& request,
                                                        WaitingCall* call) {
  std::vector<Delivery> deliveries;
  absl::StatusOr<std::optional<Answer>> answer;
  {
    MutexLock lock(mutex_);
    const PullDecision decision = core_.OnPull(request);
    Parked parked = {.call = call, .wants_weights = true};
    if (decision.is_to_train) parked.trainer = request.identity->worker;
    if (const auto* refusal = std::get_if<Refuse>(&decision.outcome)) {
      answer = ToStatus(refusal->reason);
    } else if (const auto* serve = std::get_if<Serve>(&decision.outcome)) {
      answer = AnswerNow(*serve, parked);
    } else {
      answer = AnswerNow(std::get<Park>(decision.outcome), std::move(parked));
    }
    deliveries = Absorb(decision.effects);
    WakeThread();
  }
  Deliver(std::move(deliveries));
  return answer;
}

void ShardEngine::FinishPull(ShardCore::Reader reader) {
  std::vector<Delivery> deliveries;
  {
    MutexLock lock(mutex_);
    deliveries = Absorb(core_.OnPullDone(reader));
    WakeThread();
  }
  Deliver(std::move(deliveries));
}

ShardEngine::BegunPush ShardEngine::BeginPush(const PushHeader& header) {
  MutexLock lock(mutex_);
  BegunPush begun = {.refusal = core_.OnPushHeader(header),
                     .is_of_member = core_.IsOfMember(header)};
  const bool is_idle = !is_running_ && jobs_.empty();
  if (begun.refusal.has_value() || !is_idle) return begun;
  const std::optional<Forecast> forecast = core_.ForecastUpdate(header);
  if (forecast.has_value()) begun.draft = path_->BeginDraft(*forecast);
  return begun;
}

void ShardEngine::AbandonPush(const PushHeader& header) {
  MutexLock lock(mutex_);
  core_.OnPushAbandoned(header);
}

std::optional<Answer> ShardEngine::FinishPush(PushAssembly push, WaitingCall* call) {
  const ShardCore::PushFacts facts = push.Facts();
  std::vector<Delivery> deliveries;
  std::optional<ShardJob> job;
  std::optional<Answer> answer;
  {
    MutexLock lock(mutex_);
    PushDecision decision = core_.OnPush(facts);
    if (decision.retained.has_value()) {
      held_.emplace(*decision.retained, push.TakePayload());
    } else {
      core_.ReleaseBytes(facts.header.count * sizeof(float));
    }
    if (decision.took_effect) NoteStep(facts.header);
    if (decision.took_effect && push_log_.has_value()) {
      records_.push_back({facts.header, decision.reply});
    }
    deliveries = Absorb(decision.effects);
    if (decision.answer.has_value()) {
      Parked parked = {
          .call = call, .push = std::move(decision.reply), .wants_weights = facts.header.pull};
      if (facts.header.pull) parked.trainer = facts.header.identity.worker;
      if (facts.header.holds_base) parked.held = facts.header.base;
      answer = AnswerNow(*decision.answer, std::move(parked));
    } else {
      answer = Answer{.push = std::move(decision.reply)};
    }
    job = TakeShortJob();
    WakeThread();
  }
  Deliver(std::move(deliveries));
  if (job.has_value()) RunJob(*std::move(job));
  return answer;
}

std::optional<Answer> ShardEngine::AnswerNow(const std::variant<Serve, Park>& outcome,
                                             Parked parked) {
  if (const auto* park = std::get_if<Park>(&outcome)) {
    parked.call->ticket_ = park->ticket;
    parked_.emplace(park->ticket, std::move(parked));
    return std::nullopt;
  }
  const auto& serve = std::get<Serve>(outcome);
  Answer answer = {.push = std::move(parked.push)};
  if (parked.wants_weights) answer.weights = Give(parked, serve.version, serve.work);
  return answer;
}

void ShardEngine::NoteStep(const PushHeader& header) {
  if (header.count == 0) return step_times_.OnExcuse(header.identity.worker, header.base);
  step_times_.OnGradient(header.identity.worker, header.base, options_.now());
}

ServedWeights ShardEngine::Give(const Parked& to, Version version, std::optional<RoundWork> work) {
  const bool is_to_train = !work.has_value() || work->kind == RoundWork::Kind::kCompute;
  if (to.trainer.has_value() && is_to_train) {
    step_times_.OnServed(*to.trainer, version, options_.now());
  }
  PS_CHECK(published_ != nullptr && version == core_.published());
  const bool is_held = to.held == version;
  return {.header = {.version = version,
                     .count = published_->values().size(),
                     .work = work,
                     .unchanged = is_held},
          .weights = is_held ? nullptr : published_};
}

bool ShardEngine::Cancel(WaitingCall* call) {
  MutexLock lock(mutex_);
  if (!call->ticket_.has_value()) return false;
  core_.OnCancelled(*call->ticket_);
  parked_.erase(*call->ticket_);
  call->ticket_.reset();
  return true;
}

}  // namespace slipstream
