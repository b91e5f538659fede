#include "worker/training/training_loop.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>

#include "absl/time/clock.h"

namespace slipstream {
namespace {

/// Streams of the run's seed from here on are the workers' waits.
constexpr uint64_t kDelayStreams = uint64_t{1} << 32;

/// One warning tells of all since the last.
constexpr absl::Duration kWarningInterval = absl::Seconds(1);

}  // namespace

TrainingLoop::TrainingLoop(const Options& options, const Dataset& train, Plan& plan,
                           ParameterClient& client, UnitFetcher& units, const Heartbeat& heartbeat,
                           StepFigures& figures, Interruption& interruption)
    : options_(options),
      train_(train),
      plan_(plan),
      client_(client),
      units_(units),
      heartbeat_(heartbeat),
      figures_(figures),
      interruption_(interruption),
      order_(train.count(), options.batch_size, options.seed),
      delays_(options.seed, kDelayStreams + Value(options.worker)),
      nonfinite_(options.nonfinite_max) {}

absl::Status TrainingLoop::Run() {
  while (!interruption_.interrupted()) {
    if (heartbeat_.work_ends()) client_.OnWorkEnds();
    const absl::Time begin = absl::Now();
    const absl::StatusOr<ParameterClient::Step> step = client_.Advance(plan_.weights_host());
    if (!step.ok()) return step.status();
    if (std::holds_alternative<ParameterClient::Finished>(*step)) {
      figures_.OnDone(client_.progress());
      return absl::OkStatus();
    }
    absl::Status status;
    if (const auto* compute = std::get_if<ParameterClient::Compute>(&*step)) {
      status = Step(compute->batch, absl::Now() - begin);
    } else {
      status = AwaitUnit();
    }
    if (!status.ok()) return status;
  }
  return absl::CancelledError("stopped");
}

absl::Status TrainingLoop::AwaitUnit() {
  units_.Ask();
  return TakeUnit(units_.Await());
}

absl::Status TrainingLoop::TakeUnit(const UnitFetcher::Result& result) {
  if (!result.ok()) return result.status();
  if (*result) {
    client_.OnUnit(**result);
  } else {
    client_.OnNoMoreUnits();
  }
  figures_.OnProgress(client_.progress());
  return absl::OkStatus();
}

absl::Status TrainingLoop::Prefetch() {
  if (client_.wants_unit()) units_.Ask();
  const std::optional<UnitFetcher::Result> result = units_.Take();
  return result ? TakeUnit(*result) : absl::OkStatus();
}

Batch TrainingLoop::Gather(uint64_t index) {
  examples_.clear();
  labels_.clear();
  targets_.clear();
  for (const uint32_t example : order_.Examples(index)) {
    const std::span<const float> values = train_.example(example);
    examples_.insert(examples_.end(), values.begin(), values.end());
    if (train_.is_labelled()) labels_.push_back(train_.labels[example]);
    const std::span<const float> targets = train_.target(example);
    targets_.insert(targets_.end(), targets.begin(), targets.end());
  }
  return {.examples = examples_, .labels = labels_, .index = index, .targets = targets_};
}

absl::Status TrainingLoop::Step(uint64_t index, absl::Duration pulled) {
  const absl::Time begin = absl::Now();
  plan_.WeightsArrived({0, plan_.weights_host().size()});
  const Batch batch = Gather(index);
  const size_t examples = batch.examples.size() / train_.shape.elements();
  if (absl::Status status = plan_.StartStep(batch, nullptr); !status.ok()) return status;
  const absl::StatusOr<StepResult> result = plan_.FinishStep();
  if (!result.ok()) return result.status();
  const absl::Time computed = absl::Now();
  if (const auto what = NonfinitePart(result->loss, plan_.gradients_host())) {
    return LeaveOut(index, *what);
  }

  if (absl::Status status = Delay(); !status.ok()) return status;
  if (absl::Status status = Prefetch(); !status.ok()) return status;
  const absl::Time pushing = absl::Now();
  if (absl::Status status = Push(index, examples); !status.ok()) return status;
  const absl::Time end = absl::Now();
  if (nonfinite_.count().in_a_row > 0) {
    nonfinite_.OnHealthy();
    figures_.OnNonfinite(nonfinite_.count());
  }
  figures_.OnStep({.end = end,
                   .compute = computed - begin,
                   .communication = pulled + (end - pushing),
                   .examples = static_cast<uint32_t>(examples),
                   .correct = result->correct,
                   .loss = result->loss},
                  client_.progress());
  return absl::OkStatus();
}

absl::Status TrainingLoop::LeaveOut(uint64_t index, const std::string& what) {
  const absl::Status status = nonfinite_.OnNonfinite(index, what);
  const NonfiniteSteps::Count& count = nonfinite_.count();
  figures_.OnNonfinite(count);
  if (absl::Now() - warned_ >= kWarningInterval) {
    warned_ = absl::Now();
    spdlog::warn(
        "left out a mini-batch without finite numbers batch={} gave=\"{}\" in_a_row={} total={}",
        index, what, count.in_a_row, count.total);
  }
  if (!status.ok()) return status;
  client_.Skip();
  figures_.OnProgress(client_.progress());
  return absl::OkStatus();
}

absl::Status TrainingLoop::Push(uint64_t index, size_t examples) {
  const absl::Status status = client_.Push({.batch = index,
                                            .examples = static_cast<uint32_t>(examples),
                                            .values = plan_.gradients_host()},
                                           plan_.weights_host());
  // Not what was computed, which was looked at.
  if (absl::IsOutOfRange(status)) return absl::InternalError(std::string(status.message()));
  return status;
}

absl::Status TrainingLoop::Delay() {
  if (options_.push_delay_max == absl::ZeroDuration()) return absl::OkStatus();
  const bool slept = interruption_.Sleep(options_.push_delay_max * delays_.Unit());
  return slept ? absl::OkStatus() : absl::CancelledError("stopped");
}

}  // namespace slipstream
