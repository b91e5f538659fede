#include "worker/python/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "common/config/run_config.h"
#include "common/log/log.h"
#include "common/wire/shard_wire.h"
#include "worker/core/heartbeat_times.h"

namespace slipstream {
namespace {

/// Values are checked in pieces of this size, and sent while the next piece is.
constexpr size_t kPieceValues = size_t{1} << 18;

/// Returns a failure of the caller's own: a call that comes at a wrong time.
absl::Status Misuse(const std::string& text) { return absl::AlreadyExistsError(text); }

}  // namespace

Session::Session(const Options& options, Interruption& interruption)
    : options_(options),
      interruption_(interruption),
      coordinator_(options.coordinator, {.credentials = options.credentials},
                   [this](absl::Duration wait) { return interruption_.Sleep(wait); }) {}

absl::StatusOr<std::unique_ptr<Session>> Session::Join(const Options& options,
                                                       Interruption& interruption) {
  std::unique_ptr<Session> session(new Session(options, interruption));
  if (absl::Status status = session->Start(); !status.ok()) return status;
  return session;
}

absl::Status Session::Start() {
  absl::StatusOr<JoinedRun> joined = JoinRun(coordinator_, options_.worker);
  if (!joined.ok()) {
    has_left_ = true;  // It has not been there.
    return joined.status();
  }
  joined_ = *std::move(joined);
  servers_.Note(joined_.servers);
  absl::StatusOr<RunSpec> settings =
      ToStatusOr(ParseRunConfig(joined_.settings, "the run's settings", {}));
  if (!settings.ok()) return settings.status();
  settings_ = *std::move(settings);
  nonfinite_.emplace(settings_.training.nonfinite_max);
  clip_.emplace(settings_.optimizer);
  heartbeat_ = std::make_unique<Heartbeat>(
      coordinator_, joined_.identity, HeartbeatInterval(joined_.lease, settings_.cluster.workers),
      figures_, servers_, interruption_, settings_.worker.steps_by_speed);
  return absl::OkStatus();
}

Session::~Session() {
  Leave("");
  // The client's lanes end before the memory that they use.
  local_.reset();
  work_.reset();
  units_.reset();
  client_.reset();
}

void Session::Leave(const std::string& failure) {
  interruption_.Stop();
  if (heartbeat_ != nullptr) heartbeat_->Close();
  if (std::exchange(has_left_, true)) return;
  if (client_ != nullptr) {
    AbortOpen();
    AbortFragments();
    // Pushes that were answered in the meantime count, so that others do not compute them again.
    (void)client_->Drain();
    figures_.OnProgress(client_->done().units);
  }
  const StepFigures::Figures figures = figures_.Read(absl::Now());
  // If the weights give one worker no finite values, they give them to none.
  const bool ends_run =
      !failure.empty() && figures.nonfinite.in_a_row >= settings_.training.nonfinite_max;
  // A worker that the coordinator does not hear from ends with its lease.
  (void)LeaveRun(coordinator_, joined_.identity, failure, ends_run, figures.progress);
}

absl::Status Session::Cause(const absl::Status& status) const {
  if (!absl::IsCancelled(status)) return status;
  const absl::Status failure = interruption_.failure();
  if (failure.ok()) return status;
  // A worker without a fixed id gets another one when it connects again.
  const bool may_be_replaced = options_.worker.has_value() && absl::IsFailedPrecondition(failure);
  return may_be_replaced ? WhyFenced(coordinator_, joined_.identity, failure) : failure;
}

absl::Status Session::MakeMemory(size_t parameters) {
  weights_ = AlignedBuffer<float>(parameters);
  if (settings_.wire.may_share_memory()) {
    absl::StatusOr<SharedArena> arena = SharedArena::Make(1, parameters);
    if (arena.ok()) {
      arena_ = *std::move(arena);
      values_ = arena_->part(0);
      return absl::OkStatus();
    }
    if (settings_.wire.transport == WireSpec::Transport::kShm) return arena.status();
  }
  own_values_ = AlignedBuffer<float>(parameters);
  values_ = own_values_.span();
  return absl::OkStatus();
}

absl::Status Session::Synchronize(const ModelProposal& model, std::span<const float> first) {
  const TensorLayout& layout = model.layout;
  const uint64_t examples = model.examples;
  if (client_ != nullptr) {
    return Misuse("the model is synchronized once in a run");
  }
  if (first.size() != layout.parameters()) {
    return absl::InvalidArgumentError(
        fmt::format("{} values for {} parameters", first.size(), layout.parameters()));
  }
  const uint64_t of_epoch = settings_.fixed_examples().value_or(examples);
  const bool is_handed_out = settings_.training.work == TrainingSpec::Work::kHandedOut;
  constexpr uint64_t kHandedOutMax = std::numeric_limits<uint32_t>::max();
  if (is_handed_out && (of_epoch == 0 || of_epoch > kHandedOutMax)) {
    return absl::InvalidArgumentError(
        fmt::format("the servers hand out 1 to {} examples, not {}: synchronize(model, "
                    "examples=len(dataset)), or set data.examples; with training.work own, workers "
                    "choose theirs",
                    kHandedOutMax, of_epoch));
  }
  layout_ = layout;
  epoch_examples_ = std::max<uint64_t>(of_epoch, 1);
  if (absl::Status status = MakeMemory(layout.parameters()); !status.ok()) return status;
  const auto stopped = [this] { return interruption_.interrupted(); };
  const auto take_map = [this](ShardMap map) -> absl::Status {
    if (map.shards() != joined_.servers.size()) {
      return absl::InternalError("the coordinator names other shards than servers");
    }
    map_ = std::move(map);
    if (client_ == nullptr) MakeClient();
    return absl::OkStatus();
  };
  const auto send = [&](uint64_t grant) { return client_->Initialize(grant, first); };
  const absl::Status prepared =
      PrepareModel(coordinator_, joined_.identity, model, {stopped, take_map, send});
  if (!prepared.ok()) return Cause(prepared);
  if (is_handed_out) {
    order_.emplace(of_epoch, settings_.training.batch_size, settings_.seed);
  }
  return Read(weights()).status();
}

void Session::MakeClient() {
  ShardOptions shards = ShardOptionsOf(joined_, servers_, settings_, map_, options_.credentials);
  reader_ = std::make_unique<WeightsReader>(
      joined_.identity, joined_.servers, map_, shards,
      [this](absl::Duration wait) { return interruption_.Sleep(wait); },
      interruption_.cancel_switch());
  if (arena_.has_value()) shards.arena = &*arena_;
  ParameterClient::Options options =
      ParameterClient::Options::For(settings_, joined_, layout_, map_, shards);
  options.changes_weights = true;
  client_ = std::make_unique<ParameterClient>(
      options, std::vector<ParameterClient::Slot>{{weights_.span(), values_, nullptr}},
      [this](absl::Duration wait) { return interruption_.Sleep(wait); },
      interruption_.cancel_switch());
  units_ = std::make_unique<UnitFetcher>(
      coordinator_, joined_.identity, settings_.StageOf(0).consistency, 1, figures_, interruption_);
  work_ = std::make_unique<WorkSource>(1, *client_, *units_, figures_);
}

absl::StatusOr<std::optional<Session::Work>> Session::Next() {
  if (client_ == nullptr)
    return Misuse("the model is not synchronized yet: call synchronize first");
  AbortOpen();
  AbortFragments();
  const absl::Time turn = absl::Now();
  const bool has_measured = std::exchange(has_measured_, false);
  // Weights that were fetched before an evaluation are old by now.
  bool fetches_again = has_measured && at_hand_.has_value() && !client_->goes_on() &&
                       !settings_.worker.lands_apart();
  while (!is_over_) {
    if (interruption_.interrupted()) return Cause(absl::CancelledError("interrupted"));
    client_->OnOrders(heartbeat_->orders());
    absl::Status status = client_->Drain();
    if (!status.ok()) return Cause(status);
    const absl::StatusOr<ParameterClient::Step> step =
        std::exchange(fetches_again, false) ? client_->FetchForPush(0) : client_->Advance();
    if (!step.ok()) return Cause(step.status());
    work_->TellFigures();
    if (const auto* compute = std::get_if<ParameterClient::Compute>(&*step)) {
      if (!at_hand_.has_value()) {
        status = BeginWork(compute->batches);
        if (absl::IsCancelled(status)) continue;
        if (!status.ok()) return Cause(status);
      }
      if (!at_hand_.has_value() || has_measured) {
        if (local_ != nullptr) BeginSteps();
        turn_ = turn;
        work_began_ = absl::Now();
      }
      at_hand_ = Work{compute->batches};
      return at_hand_;
    }
    if (std::holds_alternative<ParameterClient::Finished>(*step)) {
      const absl::StatusOr<bool> is_over = work_->HeedFinished(0);
      if (!is_over.ok()) return Cause(is_over.status());
      is_over_ = *is_over;
    } else {
      status = work_->AwaitUnit();
      if (!status.ok()) return Cause(status);
    }
  }
  at_hand_.reset();
  return std::optional<Work>();
}

absl::Status Session::BeginWork(const BatchRanges& batches) {
  if (local_ == nullptr) {
    if (algorithm().keeps_weights) KeepValuesWithoutEffect();
    return absl::OkStatus();
  }
  return local_->exchange.AwaitAnswers(batches);
}

void Session::KeepValuesWithoutEffect() {
  std::vector<ParameterRange> kept = client_->TakeRangesWithoutEffect();
  std::ranges::sort(kept, {}, &ParameterRange::begin);
  kept.push_back({values_.size(), values_.size()});
  size_t end = 0;
  for (const ParameterRange& range : kept) {
    std::ranges::fill(values_.subspan(end, range.begin - end), 0.0f);
    end = range.end;
  }
}

absl::StatusOr<bool> Session::FetchForPush() {
  if (!at_hand_.has_value()) return Misuse("there is no work at hand: call fetch first");
  AbortOpen();
  const BatchRanges& batches = at_hand_->batches;
  const absl::Status wanted = local_ != nullptr
                                  ? local_->exchange.Land(batches)
                                  : LocalExchange::CheckWanted(client_->FetchForPush(0), batches);
  if (wanted.ok()) return true;
  if (!absl::IsCancelled(wanted) || interruption_.interrupted()) return Cause(wanted);
  at_hand_.reset();
  return false;
}

absl::Status Session::CheckPush(uint32_t examples) const {
  if (!at_hand_.has_value()) {
    return Misuse("there is no work at hand: each push follows a fetch of weights for it");
  }
  const uint32_t fragments = settings_.worker.fragments();
  if (fragments > 1 && local_ == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("worker.fragments is {}, and this push is one of the whole model at once: take "
                    "the steps by slipstream.DiLoCo, or set worker.fragments to 0",
                    fragments));
  }
  if (local_ != nullptr && local_->steps.steps() == 0) {
    return Misuse("a push is that of local steps, and none was taken since the last one");
  }
  const uint64_t examples_max = settings_.training.batch_size * CountOf(at_hand_->batches);
  if (examples >= 1 && examples <= examples_max) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "a push of {} mini-batch(es) stands for 1 to {} examples (training.batch_size), not {}",
      CountOf(at_hand_->batches), examples_max, examples));
}

absl::Status Session::Begin(uint32_t examples, uint64_t label) {
  AbortOpen();
  if (absl::Status status = CheckPush(examples); !status.ok()) return status;
  open_ = OpenPush{.examples = examples, .label = label, .step = ++steps_, .end = values_.size()};
  open_->feed = &client_->BeginPush(
      0, {.batches = at_hand_->batches, .examples = examples, .step = open_->step, .label = label});
  return absl::OkStatus();
}

void Session::Release(size_t from) {
  if (!open_.has_value()) return;
  while (open_->end > from && !open_->nonfinite.has_value()) {
    const size_t begin = std::max(from, open_->end - std::min(open_->end, kPieceValues));
    const std::span<float> piece = values_.subspan(begin, open_->end - begin);
    if (clips_pushes()) clip_->ClipValues(piece);
    open_->nonfinite = NonfinitePart(std::nullopt, piece, settings_.wire.push_codec, begin,
                                     publishes() ? "weights" : "a gradient", &layout_);
    if (!open_->nonfinite.has_value()) open_->feed->OnGradientReady({begin, open_->end});
    open_->end = begin;
  }
}

void Session::AbortOpen() {
  if (!open_.has_value()) return;
  open_.reset();
  client_->AbortPush(0);
}

absl::StatusOr<bool> Session::Push(Values values) {
  const absl::Time computed = absl::Now();
  if (values.loss.has_value() && !std::isfinite(*values.loss)) values.loss.reset();
  if (local_ != nullptr) {
    if (absl::Status status = BeginPushOfSteps(values); !status.ok()) return status;
  } else if (!open_.has_value() || open_->examples != values.examples ||
             open_->label != values.label) {
    if (absl::Status status = Begin(values.examples, values.label); !status.ok()) return status;
  }
  Release(0);
  StepFigures::Step step;
  step.number = open_->step;
  step.batch = at_hand_->batches.front().first;
  step.turn = turn_;
  step.forward_begin = step.forward_end = work_began_;
  step.backward_end = computed;
  step.blocked = work_began_ - turn_;
  step.examples = values.examples;
  step.batches = CountOf(at_hand_->batches);
  step.loss = values.loss;
  std::optional<std::string> nonfinite = std::move(open_->nonfinite);
  absl::Status status;
  if (!nonfinite.has_value()) status = work_->Prefetch();
  if (nonfinite.has_value() || !status.ok()) AbortOpen();
  if (!status.ok()) return Cause(status);
  if (nonfinite.has_value() && publishes()) {
    return absl::InvalidArgumentError("servers do not take " + *nonfinite);
  }
  at_hand_.reset();
  if (nonfinite.has_value()) {
    if (local_ != nullptr) local_->steps.ForgetState();
    return LeaveOut(step.batch, *nonfinite);
  }
  open_.reset();
  const PushTrailer trailer = {.loss = values.loss,
                               .clip = clips_pushes() ? clip_->FactorOf(values_) : 1,
                               .absent = std::move(values.absent)};
  if (status = client_->FinishPush(0, trailer); !status.ok()) return Cause(status);
  figures_.OnStep(step);
  if (nonfinite_->count().in_a_row > 0) {
    nonfinite_->OnHealthy();
    figures_.OnNonfinite(nonfinite_->count());
  }
  return true;
}

void Session::GiveUpWork() {
  AbortOpen();
  if (local_ != nullptr) local_->exchange.Abandon();
  client_->BeginPush(0, {.batches = at_hand_->batches});
  client_->AbortPush(0);
  at_hand_.reset();
}

absl::Status Session::Skip() {
  if (!at_hand_.has_value()) return Misuse("there is no work at hand: call fetch first");
  const uint64_t batch = at_hand_->batches.front().first;
  GiveUpWork();
  // As where a training loop leaves a push out.
  if (local_ != nullptr && settings_.worker.lands_apart()) local_->steps.ForgetState();
  return LeaveOut(batch, "no gradient: its step was skipped").status();
}

absl::StatusOr<bool> Session::LeaveOut(uint64_t batch, const std::string& what) {
  LogWarning("left out a mini-batch", {{"batch", batch}, {"gave", what}});
  const absl::Status counted = nonfinite_->OnNonfinite(batch, what);
  figures_.OnNonfinite(nonfinite_->count());
  if (!counted.ok()) return counted;
  client_->Skip(0);
  figures_.OnProgress(client_->done().units);
  return false;
}

absl::Status Session::Await() {
  if (client_ == nullptr) return absl::OkStatus();
  AbortOpen();
  const absl::Status status = client_->Drain();
  work_->TellFigures();
  return Cause(status);
}

absl::StatusOr<WeightsReader::Reading> Session::Read(std::span<float> weights) {
  if (reader_ == nullptr)
    return Misuse("the model is not synchronized yet: call synchronize first");
  absl::StatusOr<WeightsReader::Reading> reading = reader_->Read(weights);
  if (!reading.ok()) return Cause(reading.status());
  return reading;
}

absl::Status Session::EndTraining() {
  if (client_ == nullptr) return Misuse("training has not begun: call synchronize first");
  ends_training_ = true;
  return Cause(heartbeat_->EndTraining());
}

absl::Status Session::LeaveOutRest() {
  for (;;) {
    const absl::StatusOr<std::optional<Work>> work = Next();
    if (!work.ok() || !work->has_value()) return work.status();
    GiveUpWork();
    client_->Skip(0);
  }
}

absl::StatusOr<bool> Session::Finish() {
  if (client_ == nullptr)
    return Misuse("the model is not synchronized yet: call synchronize first");
  AbortOpen();
  if (!is_over_ && !ends_training_) {
    return Misuse(
        "work is left for this worker: go on until fetch returns False, call stop first, "
        "or leave the run");
  }
  absl::Status status = LeaveOutRest();
  if (status.ok()) status = work_->Drain();
  if (!status.ok()) return Cause(status);
  const absl::StatusOr<bool> has_ended = heartbeat_->AwaitEndOrOrder(last_order_);
  if (!has_ended.ok()) return Cause(has_ended.status());
  if (!*has_ended) return false;
  if (status = Read(weights()).status(); !status.ok()) return Cause(status);
  if (own_weights_.size() > 0) std::ranges::copy(weights(), own_weights_.data());
  return true;
}

}  // namespace slipstream
