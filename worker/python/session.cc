#include "worker/python/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "common/config/run_config.h"
#include "common/wire/shard_wire.h"
#include "worker/core/heartbeat_times.h"

namespace slipstream {
namespace {

/// Values are checked in pieces of this size, and sent while the next piece is.
constexpr size_t kPieceValues = size_t{1} << 18;

std::vector<PolicyTraits> TraitsOf(const std::vector<PolicyStage>& stages) {
  std::vector<PolicyTraits> traits;
  for (const PolicyStage& stage : stages) traits.push_back(stage.consistency.traits());
  return traits;
}

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
  absl::StatusOr<RunSpec> settings =
      ToStatusOr(ParseRunConfig(joined_.settings, "the run's settings", {}));
  if (!settings.ok()) return settings.status();
  settings_ = *std::move(settings);
  if (absl::Status status = CheckSettings(); !status.ok()) return status;
  nonfinite_.emplace(settings_.training.nonfinite_max);
  clip_.emplace(settings_.optimizer);
  heartbeat_ = std::make_unique<Heartbeat>(
      coordinator_, joined_.identity, HeartbeatInterval(joined_.lease, settings_.cluster.workers),
      figures_, interruption_, settings_.worker.steps_by_speed);
  return absl::OkStatus();
}

absl::Status Session::CheckSettings() const {
  const WorkerSpec& worker = settings_.worker;
  if (!worker.lands_apart() && worker.pushes_per_fetch() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("worker.algorithm {} needs weights of the servers beside the worker's own, which "
                  "this package has no memory for; it does gradient, local_sgd and diloco in one "
                  "fragment",
                  RowOf(worker.algorithm).name));
}

Session::~Session() {
  Leave("");
  // The client's lanes end before the memory that they use.
  work_.reset();
  units_.reset();
  client_.reset();
}

void Session::Leave(const std::string& failure) {
  interruption_.Stop();
  if (heartbeat_ != nullptr) heartbeat_->Close();
  if (std::exchange(has_left_, true)) return;
  const StepFigures::Figures figures = figures_.Read(absl::Now());
  // A worker that the coordinator does not hear from ends with its lease.
  (void)LeaveRun(coordinator_, joined_.identity, failure, /*ends_run=*/false, figures.progress);
}

absl::Status Session::Cause(const absl::Status& status) const {
  if (!absl::IsCancelled(status)) return status;
  const absl::Status failure = interruption_.failure();
  return failure.ok() ? status : failure;
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

absl::Status Session::Synchronize(const TensorLayout& layout, uint64_t examples,
                                  std::span<const float> first) {
  if (client_ != nullptr) {
    return absl::FailedPreconditionError("the model is synchronized once in a run");
  }
  if (first.size() != layout.parameters()) {
    return absl::InvalidArgumentError(
        fmt::format("{} values for {} parameters", first.size(), layout.parameters()));
  }
  layout_ = layout;
  if (absl::Status status = MakeMemory(layout.parameters()); !status.ok()) return status;
  const auto stopped = [this] { return interruption_.interrupted(); };
  for (;;) {
    absl::StatusOr<PreparedModel> model =
        AwaitModel(coordinator_, joined_.identity, {layout, examples, 0}, stopped);
    if (!model.ok()) return Cause(model.status());
    if (model->map.shards() != joined_.servers.size()) {
      return absl::InternalError("the coordinator names other shards than servers");
    }
    map_ = std::move(model->map);
    if (client_ == nullptr) MakeClient();
    if (model->grant == 0) break;
    if (absl::Status status = Initialize(model->grant, first); !status.ok()) return Cause(status);
  }
  const uint64_t of_epoch = settings_.fixed_examples().value_or(examples);
  if (settings_.training.work == TrainingSpec::Work::kHandedOut) {
    order_.emplace(of_epoch, settings_.training.batch_size, settings_.seed);
  }
  return Read(weights()).status();
}

void Session::MakeClient() {
  ShardOptions shards = ShardOptionsOf(joined_, settings_, map_, options_.credentials);
  reader_ = std::make_unique<WeightsReader>(
      joined_.identity, joined_.servers, map_, shards,
      [this](absl::Duration wait) { return interruption_.Sleep(wait); },
      interruption_.cancel_switch());
  if (arena_.has_value()) shards.arena = &*arena_;
  client_ = std::make_unique<ParameterClient>(
      ParameterClient::Options::For(settings_, joined_, map_, shards),
      std::vector<ParameterClient::Slot>{{weights_.span(), values_, nullptr}},
      [this](absl::Duration wait) { return interruption_.Sleep(wait); },
      interruption_.cancel_switch());
  units_ = std::make_unique<UnitFetcher>(coordinator_, joined_.identity, figures_, interruption_);
  work_ =
      std::make_unique<WorkSource>(TraitsOf(settings_.stages()), 1, *client_, *units_, figures_);
}

absl::Status Session::Initialize(uint64_t grant, std::span<const float> first) {
  if (absl::Status status = client_->Initialize(grant, first); !status.ok()) return status;
  v1::FinishInitializationRequest request;
  *request.mutable_identity() = ToWire(joined_.identity);
  request.set_grant(grant);
  return coordinator_.FinishInitialization(request);
}

absl::StatusOr<std::optional<Session::Work>> Session::Next() {
  if (client_ == nullptr) return absl::FailedPreconditionError("the model is not synchronized yet");
  const absl::Time turn = absl::Now();
  while (!is_over_) {
    if (interruption_.interrupted()) return Cause(absl::CancelledError("interrupted"));
    if (heartbeat_->work_ends()) client_->OnWorkEnds();
    if (const uint64_t steps = heartbeat_->steps(); steps > 0) client_->OnSteps(steps);
    absl::Status status = client_->Drain();
    if (!status.ok()) return Cause(status);
    const absl::StatusOr<ParameterClient::Step> step = client_->Advance();
    if (!step.ok()) return Cause(step.status());
    work_->TellFigures();
    if (const auto* compute = std::get_if<ParameterClient::Compute>(&*step)) {
      if (!at_hand_.has_value()) {
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

absl::Status Session::CheckPush(const Values& values) const {
  if (!at_hand_.has_value()) {
    return absl::FailedPreconditionError(
        "there is no work at hand: a push follows each time that weights were fetched for it");
  }
  const uint64_t examples_max = settings_.training.batch_size * CountOf(at_hand_->batches);
  if (values.examples >= 1 && values.examples <= examples_max) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "a push of {} mini-batch(es) stands for 1 to {} examples (training.batch_size), not {}",
      CountOf(at_hand_->batches), examples_max, values.examples));
}

std::optional<std::string> Session::ReleaseValues(float loss, GradientFeed& feed) {
  for (size_t end = values_.size(); end > 0;) {
    const size_t begin = end > kPieceValues ? end - kPieceValues : 0;
    const std::span<float> piece = values_.subspan(begin, end - begin);
    if (pushes_gradients()) clip_->ClipValues(piece);
    auto nonfinite = NonfinitePart(loss, piece, settings_.wire.push_codec, begin);
    if (nonfinite.has_value()) return nonfinite;
    feed.OnReady({begin, end});
    end = begin;
  }
  return std::nullopt;
}

absl::StatusOr<bool> Session::Push(const Values& values) {
  if (absl::Status status = CheckPush(values); !status.ok()) return status;
  const absl::Time computed = absl::Now();
  const Work work = *std::exchange(at_hand_, std::nullopt);
  StepFigures::Step step;
  step.number = ++steps_;
  step.batch = work.batches.front().first;
  step.turn = turn_;
  step.forward_begin = step.forward_end = work_began_;
  step.backward_end = computed;
  step.blocked = work_began_ - turn_;
  step.examples = values.examples;
  step.loss = values.loss.value_or(std::numeric_limits<float>::quiet_NaN());

  GradientFeed& feed = client_->BeginPush(
      0, {.batches = work.batches, .examples = values.examples, .step = step.number});
  const std::optional<std::string> nonfinite = ReleaseValues(values.loss.value_or(0), feed);
  if (nonfinite.has_value()) {
    client_->AbortPush(0);
    const absl::Status counted = nonfinite_->OnNonfinite(step.batch, *nonfinite);
    figures_.OnNonfinite(nonfinite_->count());
    if (!counted.ok()) return counted;
    client_->Skip(0);
    figures_.OnProgress(client_->progress());
    return false;
  }
  if (absl::Status status = work_->Prefetch(); !status.ok()) {
    client_->AbortPush(0);
    return Cause(status);
  }
  const PushSeal seal = {.loss = values.loss,
                         .clip = pushes_gradients() ? clip_->FactorOf(values_) : 1};
  if (absl::Status status = client_->FinishPush(0, seal); !status.ok()) return Cause(status);
  figures_.OnStep(step);
  if (nonfinite_->count().in_a_row > 0) {
    nonfinite_->OnHealthy();
    figures_.OnNonfinite(nonfinite_->count());
  }
  return true;
}

absl::Status Session::Await() {
  if (client_ == nullptr) return absl::OkStatus();
  const absl::Status status = client_->Drain();
  work_->TellFigures();
  return Cause(status);
}

absl::StatusOr<WeightsReader::Reading> Session::Read(std::span<float> weights) {
  if (reader_ == nullptr) return absl::FailedPreconditionError("the model is not synchronized yet");
  const std::vector<PolicyTraits> traits = TraitsOf(settings_.stages());
  const auto in_step = static_cast<uint32_t>(std::ranges::count_if(traits, &PolicyTraits::in_step));
  absl::StatusOr<WeightsReader::Reading> reading = reader_->Read(in_step, weights);
  if (!reading.ok()) return Cause(reading.status());
  return reading;
}

absl::Status Session::Finish() {
  if (client_ == nullptr) return absl::FailedPreconditionError("the model is not synchronized yet");
  absl::Status status = work_->Drain();
  if (status.ok()) status = heartbeat_->AwaitEnd();
  if (status.ok()) status = Read(weights()).status();
  return Cause(status);
}

}  // namespace slipstream
