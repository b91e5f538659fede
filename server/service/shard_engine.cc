#include "server/service/shard_engine.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "common/base/check.h"
#include "server/core/shard_core_options.h"
#include "server/service/shard_report.h"

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
    case Refuse::Reason::kTooManyParked:
      break;
  }
  return absl::UnavailableError("RETRY_LATER: too many pulls wait already");
}

}  // namespace

ShardEngine::ShardEngine(const Options& options, std::optional<PushLog> push_log)
    : options_(options),
      core_(ShardCoreOptions(options.run, options.shard)),
      push_log_(std::move(push_log)),
      thread_([this] { RunJobs(); }) {}

ShardEngine::~ShardEngine() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  work_came_.NotifyAll();
  thread_.join();
}

// Orders.

void ShardEngine::OnOrders(const ServerOrders& orders) {
  std::vector<Delivery> deliveries;
  {
    MutexLock lock(mutex_);
    if (orders.number <= orders_.number) return;
    if (orders.phase != orders_.phase || orders.view.number != orders_.view.number) {
      spdlog::info("orders phase={} view={} members={}", static_cast<int>(orders.phase),
                   Value(orders.view.number), orders.view.members.size());
    }
    orders_ = orders;
    step_times_.OnView(orders.view);
    TakeModel(orders);
    deliveries = Absorb(core_.OnView(orders.view));
    for (Delivery& delivery : Absorb(core_.OnPhase(orders.phase, orders.drain_version))) {
      deliveries.push_back(std::move(delivery));
    }
    if (orders.ends_work) {
      for (Delivery& delivery : Absorb(core_.OnWorkEnds())) {
        deliveries.push_back(std::move(delivery));
      }
    }
  }
  Deliver(std::move(deliveries));
}

void ShardEngine::TakeModel(const ServerOrders& orders) {
  if (!orders.model.has_value() || core_.has_plan() || !failure_.empty()) return;
  const ParameterRange range = orders.model->shard_map.range(options_.shard);
  path_ = MakePath(range.size());
  if (path_ == nullptr) return;
  core_.SetPlan({.run = orders.run,
                 .shard_map = orders.model->shard_map.fingerprint(),
                 .count = range.size(),
                 .batches_total = orders.model->batches_total,
                 .examples_per_epoch = orders.model->examples_per_epoch});
}

std::unique_ptr<UpdatePath> ShardEngine::MakePath(size_t values) {
  const uint32_t workers = options_.run.cluster.workers;
  const uint64_t needed = ShardBytesNeeded(values, workers, options_.run.optimizer);
  const uint64_t available = options_.memory_available();
  std::unique_ptr<UpdatePath> path;
  if (needed <= available) path = UpdatePath::TryMake(options_.run.optimizer, values);
  if (path == nullptr) {
    failure_ = fmt::format(
        "the model is too large for this server: {} of weights, which with {} worker{} can take {} "
        "({} bytes) of memory, and {} are free; use more servers or a smaller model",
        BytesText(values * sizeof(float)), workers, workers == 1 ? "" : "s", BytesText(needed),
        needed, BytesText(available));
    spdlog::error("{}", failure_);
  }
  return path;
}

std::string ShardEngine::Failure() {
  MutexLock lock(mutex_);
  return failure_;
}

bool ShardEngine::Initialized() {
  MutexLock lock(mutex_);
  return orders_.grant != 0 && initialized_grant_ == orders_.grant;
}

bool ShardEngine::Drained() {
  MutexLock lock(mutex_);
  return core_.is_drained();
}

v1::ShardStatus ShardEngine::Report() {
  MutexLock lock(mutex_);
  v1::ShardStatus status = DescribeShard(core_);
  DescribeTimes(round_clock_, step_times_, options_.now(), status);
  status.set_shard(Value(options_.shard));
  status.set_address(options_.address);
  if (orders_.model.has_value()) {
    const ParameterRange range = orders_.model->shard_map.range(options_.shard);
    status.set_begin(range.begin);
    status.set_end(range.end);
  }
  status.set_live_versions(path_ == nullptr ? 0 : static_cast<uint32_t>(path_->live_versions()));
  return status;
}

// Initial weights.

absl::Status ShardEngine::CheckInitializer(const InitializeHeader& header) const {
  if (!failure_.empty()) return absl::ResourceExhaustedError(failure_);
  if (!core_.has_plan() || orders_.grant == 0) {
    return absl::UnavailableError("no client has been granted initialisation yet");
  }
  if (header.shard_map != orders_.model->shard_map.fingerprint()) {
    return absl::FailedPreconditionError("WRONG_SHARD_MAP: the model was cut by another map");
  }
  if (header.grant > orders_.grant) {
    return absl::UnavailableError(
        fmt::format("grant {} is on its way, {} is known", header.grant, orders_.grant));
  }
  if (header.grant < orders_.grant || header.identity != orders_.initializer) {
    return absl::FailedPreconditionError(
        fmt::format("initialisation is granted to worker {} under grant {}",
                    Value(orders_.initializer.worker), orders_.grant));
  }
  const size_t count = orders_.model->shard_map.range(options_.shard).size();
  if (header.count != count) {
    return absl::InvalidArgumentError(fmt::format(
        "SHAPE_MISMATCH: this shard holds {} values, {} are announced", count, header.count));
  }
  if (orders_.phase > Phase::kInitializing) {
    return absl::FailedPreconditionError("the model has its initial weights");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<FloatBuffer>> ShardEngine::BeginInitialize(
    const InitializeHeader& header) {
  MutexLock lock(mutex_);
  if (absl::Status status = CheckInitializer(header); !status.ok()) return status;
  return path_->NewWeights();
}

absl::Status ShardEngine::FinishInitialize(const InitializeHeader& header, Weights weights) {
  {
    MutexLock lock(mutex_);
    // Again: the grant may have gone to another client meanwhile.
    if (absl::Status status = CheckInitializer(header); !status.ok()) return status;
    if (initialized_grant_ == header.grant) return absl::OkStatus();  // A repetition.
    initialized_grant_ = header.grant;
    jobs_.push_back({.initial = std::move(weights)});
  }
  work_came_.NotifyAll();
  return absl::OkStatus();
}

// Pulls and pushes.

absl::StatusOr<std::optional<Answer>> ShardEngine::Pull(const PullRequest& request,
                                                        WaitingCall* call) {
  std::vector<Delivery> deliveries;
  absl::StatusOr<std::optional<Answer>> answer;
  {
    MutexLock lock(mutex_);
    const PullDecision decision = core_.OnPull(request);
    Parked parked = {.call = call, .wants_weights = true};
    if (request.trains && request.identity.has_value()) parked.trainer = request.identity->worker;
    if (const auto* refusal = std::get_if<Refuse>(&decision.outcome)) {
      answer = ToStatus(refusal->reason);
    } else if (const auto* serve = std::get_if<Serve>(&decision.outcome)) {
      answer = AnswerNow(*serve, parked);
    } else {
      answer = AnswerNow(std::get<Park>(decision.outcome), std::move(parked));
    }
    deliveries = Absorb(decision.effects);
  }
  Deliver(std::move(deliveries));
  return answer;
}

void ShardEngine::FinishPull(ShardCore::Reader reader) {
  std::vector<Delivery> deliveries;
  {
    MutexLock lock(mutex_);
    deliveries = Absorb(core_.OnPullDone(reader));
  }
  Deliver(std::move(deliveries));
}

std::optional<PushReply> ShardEngine::BeginPush(const PushHeader& header) {
  MutexLock lock(mutex_);
  return core_.OnPushHeader(header);
}

void ShardEngine::AbandonPush(const PushHeader& header) {
  MutexLock lock(mutex_);
  core_.ReleaseBytes(header.count * sizeof(float));
}

std::optional<Answer> ShardEngine::FinishPush(PushAssembly push, WaitingCall* call) {
  const ShardCore::PushFacts facts = push.Facts();
  std::vector<Delivery> deliveries;
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
      work_came_.NotifyAll();
    }
    deliveries = Absorb(decision.effects);
    if (decision.answer.has_value()) {
      Parked parked = {
          .call = call, .push = std::move(decision.reply), .wants_weights = facts.header.pull};
      if (facts.header.pull) parked.trainer = facts.header.identity.worker;
      answer = AnswerNow(*decision.answer, std::move(parked));
    } else {
      answer = Answer{.push = std::move(decision.reply)};
    }
  }
  Deliver(std::move(deliveries));
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
  return {.header = {.version = version, .count = published_->values().size(), .work = work},
          .weights = published_};
}

bool ShardEngine::Cancel(WaitingCall* call) {
  MutexLock lock(mutex_);
  if (!call->ticket_.has_value()) return false;
  core_.OnCancelled(*call->ticket_);
  parked_.erase(*call->ticket_);
  call->ticket_.reset();
  return true;
}

// The engine's thread.

std::vector<ShardEngine::Delivery> ShardEngine::Absorb(const Effects& effects) {
  UpdateJob work;
  for (const Fold& fold : effects.folds) {
    const auto held = held_.find(fold.push);
    PS_CHECK(held != held_.end());
    work.folds.push_back({fold, std::move(held->second)});
    held_.erase(held);
  }
  work.update = effects.update;
  if (!work.folds.empty() || work.update.has_value()) {
    jobs_.push_back({.work = std::move(work)});
    work_came_.NotifyAll();
  }
  std::vector<Delivery> deliveries;
  for (const Release& release : effects.released) {
    const auto found = parked_.find(release.ticket);
    PS_CHECK(found != parked_.end());
    Parked parked = std::move(found->second);
    parked_.erase(found);
    parked.call->ticket_.reset();
    Answer answer = {.push = std::move(parked.push)};
    if (parked.wants_weights) answer.weights = Give(parked, release.version, release.work);
    deliveries.emplace_back(parked.call, std::move(answer));
  }
  if (core_.is_initialized()) {
    round_clock_.Observe(core_.decided(), core_.round().contributions() + core_.round().excused(),
                         options_.now());
  }
  return deliveries;
}

void ShardEngine::RunJobs() {
  while (true) {
    std::optional<ShardJob> job;
    std::vector<PushRecord> records;
    {
      MutexLock lock(mutex_);
      while (jobs_.empty() && records_.empty() && !is_stopping_) work_came_.Wait(mutex_);
      if (jobs_.empty() && records_.empty()) return;
      records.swap(records_);
      if (!jobs_.empty()) {
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
    }
    if (job.has_value()) RunJob(*std::move(job));
    if (!records.empty()) WriteLog(records);
  }
}

void ShardEngine::RunJob(ShardJob job) {
  const uint64_t bytes = job.payload_bytes();
  const std::optional<Version> version = job.version();
  std::optional<Weights> made = std::move(job).Run(*path_);
  std::vector<Delivery> deliveries;
  {
    MutexLock lock(mutex_);
    core_.ReleaseBytes(bytes);
    if (made.has_value()) {
      published_ = *std::move(made);
      if (version.has_value()) {
        deliveries = Absorb(core_.OnPublished(*version));
      } else if (!core_.is_initialized()) {
        deliveries = Absorb(core_.OnInitialized());
      }
    }
  }
  Deliver(std::move(deliveries));
}

void ShardEngine::WriteLog(const std::vector<PushRecord>& records) {
  if (push_log_failed_) return;
  absl::Status status;
  for (const PushRecord& record : records) {
    if (status.ok()) status = push_log_->Append(record);
  }
  if (status.ok()) status = push_log_->Flush();
  if (status.ok()) return;
  // Training goes on without the log, which ends here: lines after a gap would deceive its reader.
  push_log_failed_ = true;
  spdlog::error("the push log ends here: {}", std::string(status.message()));
}

void ShardEngine::Deliver(std::vector<Delivery>&& deliveries) {
  for (auto& [call, answer] : deliveries) call->OnAnswer(std::move(answer));
}

}  // namespace slipstream
