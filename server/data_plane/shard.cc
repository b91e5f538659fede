#include "server/data_plane/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "common/base/check.h"
#include "common/settings/shards.h"
#include "server/core/shard/shard_options.h"
#include "server/core/shard/shard_return.h"

namespace slipstream {
namespace {

constexpr uint32_t kRetryAfterMs = 100;
constexpr char kReturning[] = "the shard takes no calls at the moment";

absl::Status ReturningError() {
  return absl::UnavailableError(fmt::format("RETRY_LATER: {}", kReturning));
}

absl::Status ToStatus(PullRefusal refusal) {
  switch (refusal) {
    case PullRefusal::kNoModel:
      return absl::UnavailableError("RETRY_LATER: no client has named the model yet");
    case PullRefusal::kWrongRun:
      return absl::FailedPreconditionError("WRONG_RUN: this shard serves another run");
    case PullRefusal::kWrongShardMap:
      return absl::FailedPreconditionError("WRONG_SHARD_MAP: the model was cut by another map");
    case PullRefusal::kFenced:
      return absl::FailedPreconditionError("FENCED: this incarnation is not a member any more");
    case PullRefusal::kUnknownMember:
      return absl::UnavailableError("RETRY_LATER: the view that has this member is on its way");
    case PullRefusal::kMadeUpMember:
      return absl::UnavailableError("UNKNOWN_MEMBER: the coordinator knows no such incarnation");
    case PullRefusal::kOutOfSequence:
      return absl::InvalidArgumentError("sequence: later than the push that is expected next");
    case PullRefusal::kNoSuchSlot:
      return absl::InvalidArgumentError(
          "slot: beyond the gradients that a worker may have under way");
    case PullRefusal::kLaterGeneration:
      return absl::UnavailableError(
          "RETRY_LATER: the shard is to return from a checkpoint, and has not done so yet");
    case PullRefusal::kLagged:
      return LaggedError();
    case PullRefusal::kTooManyParked:
      break;
  }
  return absl::UnavailableError("RETRY_LATER: too many pulls wait already");
}

}  // namespace

absl::Status LaggedError() {
  return absl::OutOfRangeError(
      "LAGGED: the shard does not keep this version any more (readers.versions_kept): take a newer "
      "one");
}

void Answer::Settle() {
  if (in_place == nullptr) return;
  weights = in_place->Get();
  // Only the newest version is kept, so a base is that very version.
  if (base != nullptr) base = weights;
}

Shard::Shard(const Options& options)
    : options_(options),
      keeps_bases_(RowOf(options.run.optimizer.staleness_scaling).uses_base_weights),
      adds_in_place_(options.run.consistency.traits().adds_in_place()),
      machine_(ShardOptionsOf(options.run, options.shard)) {}

void Shard::Restore(ShardState state) {
  machine_.Restore(std::move(state));
  // It may have released some that this shard's own state had not.
  std::erase_if(bases_, [this](const auto& base) { return !machine_.KeepsBase(base.first); });
}

// The model.

ShardResult Shard::OnOrders(const ServerOrders& orders) {
  const bool names_model = machine_.ValuesOrdered(orders).has_value();
  if (names_model && failure_.empty()) failure_ = MakePath(*orders.model);
  if (failure_.empty()) return TakeOrders(orders);
  // Take the orders as if they named no model: nobody can train with this shard.
  ServerOrders without_model = orders;
  without_model.model.reset();
  return TakeOrders(without_model);
}

ShardResult Shard::TakeOrders(const ServerOrders& orders) {
  ShardOutput output = machine_.OnOrders(orders);
  Record(ShardEvent::kOrders, orders);
  return Absorb(std::move(output));
}

void Shard::OnCoordinatorAsked() {
  if (machine_.OnCoordinatorAsked()) Record(ShardEvent::kCoordinatorAsked);
}

void Shard::OnCoordinatorAnswered() {
  if (machine_.OnCoordinatorAnswered()) Record(ShardEvent::kCoordinatorAnswered);
}

std::string Shard::MakePath(const ModelOrders& model) {
  const RunSpec& run = options_.run;
  const ParameterRange range = model.shard_map.range(options_.shard);
  const size_t values = range.size();
  const uint64_t gradients = GradientsUnderWay(run);
  const uint64_t needed = ShardBytesNeeded(values, run);
  const uint64_t available = options_.memory_available();
  if (needed <= available) {
    training_state_ =
        TrainingState::TryMake(run.server_optimizer(), model.layout, range, adds_in_place_);
  }
  members_max_ = MembersWithin(available, values, run);
  if (options_.read_start != nullptr) {
    start_ = StartOfShard{options_.read_start, model.layout, range,
                          run.training.start_from.optimizer_state};
  }
  if (training_state_ != nullptr) {
    training_state_->ReuseVersions(VersionsReused(values, run.cluster.workers));
    return "";
  }
  return fmt::format(
      "the model is too large for this server: {} of weights, which with {} gradient{} under way "
      "can take {} ({} bytes) of memory, and {} are free; use more servers or a smaller model",
      BytesText(values * sizeof(float)), gradients, gradients == 1 ? "" : "s", BytesText(needed),
      needed, BytesText(available));
}

absl::StatusOr<std::shared_ptr<FloatBuffer>> Shard::BeginInitialize(
    const InitializeHeader& header) {
  if (!failure_.empty()) return absl::ResourceExhaustedError(failure_);
  if (absl::Status status = machine_.CheckInitializer(header); !status.ok()) return status;
  return training_state_->NewWeights();
}

absl::Status Shard::FinishInitialize(const InitializeHeader& header, Weights& weights) {
  const absl::StatusOr<bool> is_new = machine_.OnInitialWeights(header);
  if (!is_new.ok()) return is_new.status();
  if (!*is_new) return absl::OkStatus();
  Record(ShardEvent::kInitialWeights);
  jobs_.emplace_back(*training_state_, ShardJob::Initial{std::move(weights), header.grant,
                                                         start_.has_value() ? &*start_ : nullptr});
  return absl::OkStatus();
}

// Returns.

ShardResult Shard::BeginReturn() {
  is_returning_ = true;
  ShardResult result;
  const std::vector<PendingCall> waiting = machine_.state().waiting.all();
  for (const PendingCall& call : waiting) {
    Cancel(call.call);
    if (call.push.has_value()) {
      result.answers.push_back({.call = call.call, .push = NotNow(kReturning)});
    } else {
      result.answers.push_back({.call = call.call, .refusal = ReturningError()});
    }
  }
  return result;
}

bool Shard::IsQuiet() const {
  return is_returning_ && pushes_arriving_ == 0 && jobs_.empty() && running_ == 0;
}

std::shared_ptr<const ShardSave> Shard::SaveNow() {
  PS_CHECK(IsQuiet() && recorder_ == nullptr);
  const ShardState& state = machine_.state();
  const bool is_saved = state.saves.last_saved() == state.versions.decided();
  if (!machine_.is_initialized() || is_saved || adds_in_place_) return nullptr;
  std::shared_ptr<ShardSave> save = NewSave();
  save->values = training_state_->Save();
  save->state.open.round = state.open.round.Emptied();
  save->state.members.ForgetAnswersAfter(state.versions.decided());
  return save;
}

std::shared_ptr<ShardSave> Shard::NewSave() {
  auto save = std::make_shared<ShardSave>(ShardSave{.state = machine_.state()});
  if (recorder_ == nullptr && !is_redoing()) return save;
  save->bases = bases_;
  save->bases.erase(machine_.decided());
  if (running_job_.has_value()) save->unfinished.push_back(*running_job_);
  for (const ShardJob& job : jobs_) {
    if (job.is_of_updates()) save->unfinished.push_back({job.payload_bytes(), job.version()});
  }
  if (recorder_ != nullptr) save->log = recorder_->BeginSegment();
  return save;
}

ArrayBuffers Shard::NewArrays(const ModelOrders& model) {
  if (training_state_ == nullptr && failure_.empty()) failure_ = MakePath(model);
  if (training_state_ == nullptr) return {};
  return training_state_->NewArrays();
}

void Shard::Return(ShardSave saved, ArrayBuffers arrays, Generation generation) {
  PS_CHECK(MayReturn());
  held_.clear();
  bases_.clear();
  kept_.clear();
  made_early_.clear();
  training_state_->Restore(std::move(arrays), saved.values);
  machine_.Restore(Returned(std::move(saved.state), generation));
  kept_[machine_.published()] = NewKept(training_state_->newest());
  is_returning_ = false;
}

PushReply Shard::NotNow(std::string reason) const {
  PushReply reply = {.outcome = PushOutcome::kRetryLater,
                     .version = machine_.decided(),
                     .retry_after_ms = kRetryAfterMs,
                     .message = std::move(reason)};
  reply.generation = machine_.generation();
  return reply;
}

// Calls.

ShardResult Shard::Pull(CallId call, const PullRequest& request) {
  // A new process has no weights until it is told where to return to. Nothing that a member says of
  // its place in an earlier process means anything to it.
  const bool has_to_return = !machine_.is_initialized() && machine_.phase() >= Phase::kTraining &&
                             machine_.state().initial_weights.received_grant() == 0;
  if (is_returning() || has_to_return) {
    ShardResult refused;
    refused.answers.push_back({.call = call, .refusal = ReturningError()});
    return refused;
  }
  return TakePull(call, request);
}

ShardResult Shard::TakePull(CallId call, const PullRequest& request) {
  ShardOutput output = machine_.OnPull(call, request);
  Record(ShardEvent::kPull, call, request);
  return Absorb(std::move(output));
}

ShardResult Shard::FinishPull(CallId call, const Reader& reader) {
  ShardOutput output = machine_.OnPullDone(call, reader);
  Record(ShardEvent::kPullDone, call, reader);
  return Absorb(std::move(output));
}

bool Shard::Cancel(CallId call) {
  const bool was_waiting = machine_.OnCancelled(call);
  if (was_waiting) Record(ShardEvent::kCancelled, call);
  return was_waiting;
}

BegunPush Shard::BeginPush(const PushHeader& header) {
  if (is_returning()) return {.refusal = NotNow(kReturning)};
  PushAdmission admission = TakePushHeader(header);
  BegunPush begun = {.refusal = std::move(admission.refusal),
                     .is_of_member = admission.is_of_member,
                     .push = admission.push};
  if (!begun.refusal.has_value()) ++pushes_arriving_;
  // While initial weights are put in place, there are none to make a draft from.
  const bool is_idle = running_ == 0 && jobs_.empty();
  if (admission.draft.has_value() && is_idle)
    begun.draft = training_state_->BeginDraft(*admission.draft);
  if (admission.draft.has_value() && begun.draft == nullptr) TakeDroppedDraft(begun.push);
  return begun;
}

PushAdmission Shard::TakePushHeader(const PushHeader& header) {
  PushAdmission admission = machine_.OnPushHeader(header);
  Record(ShardEvent::kPushHeader, header);
  return admission;
}

void Shard::TakeDroppedDraft(PushId push) {
  machine_.OnDraftEnded(push);
  Record(ShardEvent::kDraftDropped, push);
}

ShardResult Shard::FinishPush(CallId call, PushAssembly& push) {
  if (is_returning()) {
    AbandonPush(push);
    ShardResult refused;
    refused.answers.push_back({.call = call, .push = NotNow(kReturning)});
    return refused;
  }
  PS_CHECK(pushes_arriving_-- > 0);
  absl::StatusOr<ShardResult> result = TakePush(call, push);
  PS_CHECK(result.ok());
  return *std::move(result);
}

absl::StatusOr<ShardResult> Shard::TakePush(CallId call, PushAssembly& push) {
  const ShardMachine::PushFacts facts = push.Facts();
  // A gradient of the newest version needs no compensation, even if its slot was given another.
  const bool needs_base = keeps_bases_ && facts.header.base != machine_.decided();
  ShardOutput output = machine_.OnPush(call, facts);
  std::vector<std::shared_ptr<const ReceivedValues>> pieces;
  if (output.keeps_payload) {
    PushPayload& payload = held_.emplace(facts.push, push.TakePayload()).first->second;
    if (payload.bytes != facts.header.count * sizeof(float)) {
      return absl::DataLossError("the values of a push are missing");
    }
    if (needs_base) {
      const auto base = bases_.find(facts.header.base);
      if (base == bases_.end()) {
        return absl::DataLossError("the weights that a push was computed from are missing");
      }
      payload.base = base->second;
    }
    if (recorder_ != nullptr) pieces = payload.pieces;
  }
  if (recorder_ != nullptr) {
    recorder_->Record(EncodeEvent(ShardEvent::kPush, call, facts), std::move(pieces));
  }
  return Absorb(std::move(output));
}

void Shard::AbandonPush(const PushAssembly& push) {
  PS_CHECK(pushes_arriving_-- > 0);
  TakeAbandonedPush(push.push(), push.header());
}

void Shard::TakeAbandonedPush(PushId push, const PushHeader& header) {
  machine_.OnPushAbandoned(push, header);
  Record(ShardEvent::kPushAbandoned, push, header);
}

// The machine's output.

ShardResult Shard::Absorb(ShardOutput output) {
  UpdateJob work = {.folds = {}, .update = output.update};
  for (const Fold& fold : output.folds) {
    auto held = held_.extract(fold.push);
    PS_CHECK(!held.empty());
    work.folds.push_back({fold, std::move(held.mapped())});
  }
  if (!work.folds.empty() || work.update.has_value()) {
    jobs_.emplace_back(*training_state_, std::move(work));
  }
  ShardResult result = {
      .answers = {}, .lagged = std::move(output.lagged), .record = std::move(output.record)};
  for (ShardAnswer& answer : output.answers) {
    if (keeps_bases_) KeepBase(answer);
    // Nobody waits for the answers of a process that has ended.
    if (!is_redoing()) result.answers.push_back(WithValues(std::move(answer)));
  }
  if (keeps_bases_) ForgetBases();
  if (output.saves && is_redoing()) {
    redone_save_ = NewSave();
  } else if (output.saves) {
    jobs_.emplace_back(*training_state_, NewSave());
  }
  return result;
}

void Shard::KeepBase(const ShardAnswer& answer) {
  if (!answer.weights.has_value() || answer.trainers.empty()) return;
  const Version version = answer.weights->version;
  if (!machine_.KeepsBase(version)) return;  // Its worker has left meanwhile.
  // A save that lacks weights which were given is found when a gradient of theirs comes.
  if (is_redoing() && !kept_.contains(version)) return;
  const Weights& weights = kept_.at(version).weights;
  bases_[version] = weights;
  // Until its version is made, a save does not know which weights its log will need.
  for (const ShardJob& job : jobs_) {
    const ShardJob::Save save = job.save();
    const bool is_needed = save != nullptr && save->log > 0;
    if (is_needed && version < save->state.versions.decided()) save->bases[version] = weights;
  }
}

void Shard::ForgetBases() {
  for (const Version version : machine_.TakeBasesReleased()) bases_.erase(version);
}

Answer Shard::WithValues(ShardAnswer answer) const {
  if (answer.refusal.has_value()) {
    return {.call = answer.call, .refusal = ToStatus(*answer.refusal)};
  }
  Answer given = {.call = answer.call,
                  .push = std::move(answer.push),
                  .header = std::move(answer.weights),
                  .trainers = std::move(answer.trainers)};
  if (!given.header.has_value()) return given;
  const Kept& kept = kept_.at(given.header->version);
  PS_CHECK(kept.weights->values().size() == given.header->count);
  if (!given.header->unchanged) {
    given.weights = kept.weights;
    given.in_place = kept.in_place;
  }
  if (!given.push.has_value()) {
    given.checksums = kept.checksums;
    given.changes = kept.changes;
  }
  if (given.header->base.has_value()) given.base = kept_.at(*given.header->base).weights;
  return given;
}

// Jobs.

ShardJob Shard::TakeJob() {
  PS_CHECK(has_job());
  return TakeFirstJob();
}

ShardJob Shard::TakeFirstJob() {
  ++running_;
  ShardJob job = std::move(jobs_.front());
  jobs_.pop_front();
  running_job_.reset();
  if (job.is_of_updates()) running_job_ = {job.payload_bytes(), job.version()};
  return job;
}

ShardResult Shard::FinishJob(ShardJob job) {
  PS_CHECK(running_-- > 0);
  auto& [made, failure, started_from] = job.result();
  if (!failure.ok()) {
    failure_ = std::string(failure.message());
    return {};
  }
  if (!started_from.empty()) started_from_ = std::move(started_from);
  if (ShardJob::Save save = job.save(); save != nullptr) return {.save = std::move(save)};
  running_job_.reset();
  machine_.ReleaseBytes(job.payload_bytes());
  Record(job.is_initial() ? ShardEvent::kInitialWeights : ShardEvent::kJobDone);
  if (!made.has_value()) return {};
  if (job.is_initial()) return Publish({}, *std::move(made), job.grant());
  made_early_.emplace(*job.version(), *std::move(made));
  ShardResult result;
  while (!made_early_.empty() && made_early_.begin()->first == Next(machine_.published())) {
    auto next = made_early_.extract(made_early_.begin());
    ShardResult more = Publish(next.key(), std::move(next.mapped()), 0);
    std::ranges::move(more.answers, std::back_inserter(result.answers));
    std::ranges::move(more.lagged, std::back_inserter(result.lagged));
  }
  return result;
}

Shard::Kept Shard::NewKept(Weights weights) const {
  return {std::move(weights), training_state_->NewChecksums(), std::make_shared<VersionChanges>(),
          nullptr};
}

ShardResult Shard::Publish(Version version, Weights weights, uint64_t grant) {
  Kept& made = kept_[version];
  made = NewKept(weights != nullptr ? std::move(weights) : made.weights);
  if (adds_in_place_) {
    made.in_place = std::make_shared<InPlaceVersion>(training_state_->in_place());
  }
  ShardOutput output =
      version > Version{} ? machine_.OnPublished(version) : machine_.OnInitialized(grant);
  kept_.erase(kept_.begin(), kept_.lower_bound(machine_.oldest_kept()));
  // Changes to a version that is not the newest are rarely asked for again.
  for (auto& [older, kept] : kept_) {
    if (older != version) kept.changes = std::make_shared<VersionChanges>();
  }
  return Absorb(std::move(output));
}

}  // namespace slipstream
