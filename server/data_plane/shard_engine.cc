#include "server/data_plane/shard_engine.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log/log.h"
#include "common/protocol/composite_push.h"
#include "common/settings/shards.h"
#include "server/status/shard_report.h"

namespace slipstream {
namespace {

// The bytes that events without payloads may take of those that wait for the log. They are short,
// but with a small model and a slow disk there may be thousands.
constexpr uint64_t kEventBytesMax = uint64_t{4} << 20;

constexpr char kAwaitsCoordinator[] = "the coordinator has yet to hear where this shard goes on";

}  // namespace

ShardEngine::ShardEngine(const Options& options, std::optional<PushLog> push_log)
    : options_(options),
      shard_(NewShard()),
      log_stage_(options.run.durability.keeps_log() ? LogStage::kNotBegun : LogStage::kNone),
      push_log_(push_log.has_value() ? std::make_unique<PushLogWriter>(*std::move(push_log))
                                     : nullptr),
      thread_([this] { RunJobs(); }) {}

ShardEngine::~ShardEngine() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  work_came_.NotifyAll();
  thread_.join();
  log_.reset();  // What it writes now may answer calls, for which everything is needed.
}

std::unique_ptr<Shard> ShardEngine::NewShard() const {
  return std::make_unique<Shard>(Shard::Options{.shard = options_.shard,
                                                .run = options_.run,
                                                .memory_available = options_.memory_available,
                                                .read_start = options_.read_start});
}

// Orders and status.

void ShardEngine::OnOrders(const ServerOrders& orders) {
  Answers answers;
  bool is_news = false;
  std::string failure;
  OpenStore(orders.run, orders.phase);
  {
    MutexLock lock(mutex_);
    if (orders.number <= orders_.number) return;
    is_news = orders.phase != orders_.phase || orders.view.number != orders_.view.number;
    orders_ = orders;
    step_times_.OnView(orders.view, options_.now());
    const bool had_failed = !shard_->failure().empty();
    NoteModel();
    if (checkpoints_ != nullptr) checkpoints_->Keep(orders.save.safe);
    answers = NoteReturn();
    // A shard that returns takes the orders when it is back.
    if (!shard_->is_returning()) answers = GiveOrders();
    if (!had_failed) failure = shard_->failure();
  }
  // Log without the lock, as writing the log may be slow.
  if (is_news) {
    LogInfo("orders", {{"phase", Name(orders.phase)},
                       {"view", Value(orders.view.number)},
                       {"members", orders.view.members.size()}});
  }
  if (!failure.empty()) LogError(failure);
  Deliver(std::move(answers));
}

Answers ShardEngine::GiveOrders() {
  if (!TakesOrders()) return {};
  const std::optional<uint64_t> values = shard_->machine().ValuesOrdered(orders_);
  Answers answers = Absorb(shard_->OnOrders(orders_));
  if (values.has_value() && shard_->failure().empty()) options_.on_model(*values);
  return answers;
}

void ShardEngine::OnCoordinatorAsked() {
  MutexLock lock(mutex_);
  shard_->OnCoordinatorAsked();
}

void ShardEngine::OnCoordinatorAnswered() {
  MutexLock lock(mutex_);
  shard_->OnCoordinatorAnswered();
  is_recovery_taken_ |= is_recovery_told_;
}

bool ShardEngine::AwaitsCoordinator() {
  MutexLock lock(mutex_);
  const bool is_redone = log_stage_ == LogStage::kIsDue || log_stage_ == LogStage::kBeingRedone;
  const bool will_tell = is_redone && recovery_failure_.empty();
  return will_tell || AwaitsCoordinatorLocked();
}

bool ShardEngine::AwaitsCoordinatorLocked() const {
  return recovered_.has_value() && !is_recovery_taken_;
}

void ShardEngine::OnDescribed() {
  MutexLock lock(mutex_);
  is_recovery_told_ |= recovered_.has_value();
}

bool ShardEngine::ReadersWait() {
  MutexLock lock(mutex_);
  return shard_->machine().ReadersWaitForPlace();
}

std::string ShardEngine::Failure() {
  MutexLock lock(mutex_);
  if (!recovery_failure_.empty()) return recovery_failure_;
  // A directory that another process has is free once that ends. And once the run has begun, its
  // state is on this disk, which may be mended.
  const bool may_pass =
      absl::IsResourceExhausted(store_failure_) || orders_.phase >= Phase::kTraining;
  return store_failure_.ok() || may_pass ? shard_->failure()
                                         : std::string(store_failure_.message());
}

bool ShardEngine::Initialized() {
  MutexLock lock(mutex_);
  const ShardMachine& machine = shard_->machine();
  const bool has_log = log_stage_ != LogStage::kNone;
  const bool is_away = !has_log && shard_->is_returning() && !is_draining_;
  if (!machine.has_granted_weights() || is_away) return false;
  const bool come_from_disk = recovered_.has_value() || machine.generation() > Generation{};
  if (options_.open_store == nullptr || come_from_disk) return true;
  // Until they are saved a crash could take them away, and the run must not build on them. Without
  // a log, a disk that is full does not keep the run from its beginning.
  return checkpoints_ != nullptr &&
         (checkpoints_->HasSavedInitial(machine.state().initial_weights.initialized_grant()) ||
          (!has_log && checkpoints_->has_failed()));
}

Generation ShardEngine::CurrentGeneration() {
  MutexLock lock(mutex_);
  return shard_->machine().generation();
}

bool ShardEngine::MayBeMember(const Identity& identity) {
  MutexLock lock(mutex_);
  if (identity.run == 0 || identity.run != orders_.run) return false;
  const MemberTable& members = shard_->machine().members();
  using Verdict = MemberTable::Verdict;
  return members.CheckMember(identity.worker, identity.incarnation) != Verdict::kFenced;
}

uint64_t ShardEngine::RunNumber() {
  MutexLock lock(mutex_);
  return orders_.run;
}

ShardId ShardEngine::AggregatorOf(WorkerId worker) const {
  const ClusterSpec& cluster = options_.run.cluster;
  // Without a tree this is a number that nobody has.
  const uint32_t fanout = std::max(1u, cluster.tree.fanout);
  return ShardId{cluster.AggregatorNumber(Value(worker) / fanout, Value(options_.shard))};
}

uint32_t ShardEngine::MembersMax() {
  MutexLock lock(mutex_);
  return shard_->members_max();
}

bool ShardEngine::Drained() {
  MutexLock lock(mutex_);
  const ShardMachine& machine = shard_->machine();
  if (!machine.is_drained() || shard_->is_returning()) return false;
  // The weights that are measured next must not be lost. A disk that is full does not keep the run
  // from its end.
  return checkpoints_ == nullptr || machine.phase() == Phase::kFailed ||
         checkpoints_->HasOrCannotWrite(machine.generation(), machine.decided());
}

v1::ShardProgress ShardEngine::Progress() {
  MutexLock lock(mutex_);
  return ProgressOf(shard_->machine());
}

v1::ShardStatus ShardEngine::Report() {
  MutexLock lock(mutex_);
  v1::ShardStatus status = DescribeShard(shard_->machine());
  DescribeTimes(round_clock_, step_times_, options_.now(), status);
  status.set_shard(Value(options_.shard));
  status.set_address(options_.address);
  if (orders_.model.has_value()) {
    const ParameterRange range = orders_.model->shard_map.range(options_.shard);
    status.set_begin(range.begin);
    status.set_end(range.end);
    status.set_memory_needed_bytes(ShardBytesNeeded(range.size(), options_.run));
  }
  push_times_.Describe(*status.mutable_push_times());
  value_counts_.Describe(status);
  const TrainingState* state = shard_->training_state();
  status.set_live_versions(state == nullptr ? 0 : static_cast<uint32_t>(state->live_versions()));
  status.set_started_from(shard_->started_from());
  if (checkpoints_ != nullptr) checkpoints_->Describe(status);
  if (!store_failure_.ok()) status.set_checkpoint_failure(std::string(store_failure_.message()));
  if (log_ != nullptr) {
    log_->Describe(status);
    if (recovered_.has_value()) status.mutable_log()->set_events_redone(recovered_->log.events);
  }
  if (push_log_ != nullptr) {
    status.set_push_log_failure(push_log_->failure());
    status.set_push_log_pushes(push_log_->pushes());
  }
  return status;
}

void ShardEngine::CountPulled(const Answer& answer, Encoding encoding,
                              const VersionChanges::Parts& changes) {
  if (answer.weights == nullptr) return;
  const uint64_t values = answer.weights->values().size();
  uint64_t bytes = EncodedBytes(encoding, values);
  if (changes != nullptr) {
    bytes = 0;
    for (const ValueChanges& part : *changes) bytes += part.blocks.size();
  }
  value_counts_.OnPulled(values, bytes);
}

std::string ShardEngine::FinishPushLog() {
  return push_log_ == nullptr ? std::string() : push_log_->Finish();
}

// Initial weights.

absl::StatusOr<std::shared_ptr<FloatBuffer>> ShardEngine::BeginInitialize(
    const InitializeHeader& header) {
  MutexLock lock(mutex_);
  if (!TakesOrders()) {
    return absl::UnavailableError("RETRY_LATER: the directory for checkpoints is not open yet");
  }
  return shard_->BeginInitialize(header);
}

absl::Status ShardEngine::FinishInitialize(const InitializeHeader& header, Weights weights) {
  MutexLock lock(mutex_);
  const absl::Status status = shard_->FinishInitialize(header, weights);
  WakeThread();
  return status;
}

void ShardEngine::ShareVersions() {
  TrainingState* state = nullptr;
  {
    MutexLock lock(mutex_);
    state = shard_->training_state();
  }
  // This gives memory back, which takes a while, so the lock is released.
  if (state != nullptr) state->ShareVersions();
}

// Calls.

std::optional<Answer> ShardEngine::Pull(const PullRequest& request, WaitingCall* call) {
  Answers answers;
  {
    MutexLock lock(mutex_);
    if (AwaitsCoordinatorLocked()) {
      return Answer{.refusal =
                        absl::UnavailableError(absl::StrCat("RETRY_LATER: ", kAwaitsCoordinator))};
    }
    if (request.trains) step_times_.OnAsked(request.identity->worker, options_.now());
    answers = Absorb(shard_->Pull(call->name(), request));
  }
  return Deliver(std::move(answers), call);
}

void ShardEngine::FinishPull(WaitingCall* call, const Reader& reader) {
  Answers answers;
  {
    MutexLock lock(mutex_);
    answers = Absorb(shard_->FinishPull(call->name(), reader));
  }
  Deliver(std::move(answers));
}

std::optional<WeightsTrailer> ShardEngine::TrailerOf(const Answer& answer) {
  WeightsTrailer trailer = {.checksums = answer.checksums->Of(answer.weights->values())};
  MutexLock lock(mutex_);
  trailer.newest = log_ == nullptr ? shard_->machine().published()
                                   : std::max(published_and_synced_, answer.header->version);
  return trailer;
}

BegunPush ShardEngine::BeginPush(const PushHeader& header) {
  MutexLock lock(mutex_);
  if (AwaitsCoordinatorLocked()) return {.refusal = shard_->NotNow(kAwaitsCoordinator)};
  if (LogIsFull()) return {.refusal = shard_->NotNow("too much waits for the log already")};
  return shard_->BeginPush(header);
}

bool ShardEngine::LogIsFull() const {
  const std::optional<ShardPlan>& plan = shard_->machine().state().run.plan;
  if (log_ == nullptr || !plan.has_value()) return false;
  // The pushes of workers that wait for their answers fit.
  return log_->bytes_waiting() > ShardPushBytes(plan->count, options_.run) + kEventBytesMax;
}

std::optional<Answer> ShardEngine::Refuse(PushReply refusal, WaitingCall* call) {
  Answers answers;
  {
    MutexLock lock(mutex_);
    // The framing, which finds that a stream is broken, does not know the shard's version.
    if (refusal.outcome == PushOutcome::kLengthMismatch) {
      refusal.version = shard_->machine().decided();
      refusal.generation = shard_->machine().generation();
    }
    Answer answer = {.call = call->name(), .push = std::move(refusal)};
    answers = HoldUntilSynced({std::move(answer)}, nullptr);
  }
  return Deliver(std::move(answers), call);
}

void ShardEngine::AbandonPush(PushAssembly& push) {
  push.CancelDraft();  // Without the lock, as memory may be given back.
  MutexLock lock(mutex_);
  shard_->AbandonPush(push);
  WakeThread();
}

std::optional<Answer> ShardEngine::FinishPush(PushAssembly push, WaitingCall* call) {
  const absl::Time complete = options_.now();
  Answers answers;
  std::optional<ShardJob> job;
  {
    MutexLock lock(mutex_);
    ShardResult result = shard_->FinishPush(call->name(), push);
    if (shard_->has_own_job()) job = shard_->TakeJob();
    answers = Absorb(std::move(result));
    push_times_.Add(options_.now() - complete);
  }
  std::optional<Answer> answer = Deliver(std::move(answers), call);
  if (job.has_value()) RunJob(*std::move(job));
  return answer;
}

bool ShardEngine::Cancel(WaitingCall* call) {
  MutexLock lock(mutex_);
  // An answer that is held comes by itself, unless the log is lost. A process that ends does not
  // wait for it.
  if ((is_log_lost_ || is_draining_) && DropHeld(call->name())) return true;
  return shard_->Cancel(call->name());
}

// The results of an event.

Answers ShardEngine::Absorb(ShardResult result) {
  if (result.record.has_value() && result.record->took_effect) NotePush(*result.record);
  for (const Answer& answer : result.answers) {
    for (const WorkerId trainer : answer.trainers) {
      step_times_.OnServed(trainer, answer.header->version, options_.now());
    }
  }
  // A call is not destroyed before it has said FinishPull, for which the lock is needed.
  for (const CallId call : result.lagged) WaitingCall::Of(call)->OnLagged(LaggedError());
  const ShardMachine& machine = shard_->machine();
  if (machine.is_initialized()) {
    round_clock_.Observe(machine.decided(),
                         machine.round().contributions() + machine.round().excused(),
                         options_.now());
  }
  WakeThread();
  return HoldUntilSynced(std::move(result.answers), std::move(result.save));
}

void ShardEngine::NotePush(const PushRecord& record) {
  if (IsComposite(record.header)) {
    for (const PushPart& part : record.header.parts) {
      NotePush({HeaderOf(record.header, part), ReplyTo(record.reply, part), record.took_effect});
    }
    return;
  }
  const PushHeader& header = record.header;
  const WorkerId worker = header.identity.worker;
  if (header.count == 0) {
    step_times_.OnExcuse(worker, header.base);
  } else {
    step_times_.OnGradient(worker, header.base, options_.now());
  }
  if (header.pull) {
    step_times_.OnAsked(worker, options_.now());
  } else {
    step_times_.OnPushed(worker, options_.now());
  }
  if (push_log_ != nullptr) {
    push_log_->Add(absl::Now(), header, record.reply, shard_->machine().stage());
  }
}

std::optional<Answer> ShardEngine::Deliver(Answers answers, WaitingCall* own) {
  std::optional<Answer> to_own;
  for (Answer& answer : answers) {
    answer.Settle();
    WaitingCall* const call = WaitingCall::Of(answer.call);
    if (call == own) {
      to_own = std::move(answer);
    } else {
      call->OnAnswer(std::move(answer));
    }
  }
  return to_own;
}

// The thread.

void ShardEngine::WakeThread() {
  if (shard_->has_job() || shard_->IsQuiet()) work_came_.NotifyAll();
}

void ShardEngine::RunJobs() {
  while (true) {
    std::optional<ShardJob> job;
    std::optional<ShardReturn> to;
    std::optional<ModelOrders> model;
    {
      MutexLock lock(mutex_);
      is_recovering_ = false;
      while (!shard_->has_job() && !MayReturn() && log_stage_ != LogStage::kIsDue &&
             !(is_stopping_ && !shard_->is_running())) {
        work_came_.Wait(mutex_);
      }
      if (shard_->has_job()) {
        job = shard_->TakeJob();
      } else if (is_stopping_) {
        return;
      } else if (MayReturn()) {
        to = std::exchange(return_, std::nullopt);
        model = orders_.model;
      }
      is_recovering_ = !job.has_value();
    }
    if (job.has_value()) {
      RunJob(*std::move(job));
    } else if (!to.has_value()) {
      Recover();
    } else if (const absl::Status done = Return(*to, *model); !done.ok()) {
      NoteFailedReturn(*to, done);
    }
  }
}

void ShardEngine::RunJob(ShardJob job) {
  job.Run();
  Answers answers;
  {
    MutexLock lock(mutex_);
    answers = Absorb(shard_->FinishJob(std::move(job)));
    if (is_stopping_) work_came_.NotifyAll();
  }
  Deliver(std::move(answers));
}

}  // namespace slipstream
