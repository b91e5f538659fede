#include "worker/training/evaluator.h"

#include <sys/resource.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "common/process/steady_time.h"
#include "worker/training/test_measures.h"

namespace slipstream {
namespace {

/// Gives way to training on the same cores.
constexpr int kNiceness = 10;

}  // namespace

Evaluator::Evaluator(const Options& options, const Dataset& test, Device& device,
                     const ModelKeeper& keeper, const CoordinatorClient& coordinator,
                     Heartbeat& heartbeat, Interruption& interruption)
    : options_(options),
      test_(test),
      device_(device),
      reporter_(options.identity, options.examples_per_epoch, keeper, coordinator),
      heartbeat_(heartbeat),
      interruption_(interruption),
      thread_([this] { Run(); }) {}

Evaluator::~Evaluator() { thread_.join(); }

void Evaluator::Run() {
  // On Linux niceness belongs to a thread, and the threads that it starts inherit it.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
  uint64_t last = 0;
  while (const std::optional<Heartbeat::Order> order = heartbeat_.AwaitOrder(last)) {
    if (const absl::Status status = Serve(*order); !status.ok()) {
      interruption_.Fail(status);
      return;
    }
    last = order->number;
  }
}

absl::Status Evaluator::Prepare() {
  if (plan_) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<Plan>> plan =
      device_.Prepare(options_.model, {.batch_size_max = kTestBatchSize, .trains = false});
  if (!plan.ok()) return plan.status();
  plan_ = *std::move(plan);
  reader_ = std::make_unique<WeightsReader>(
      options_.identity, options_.servers, options_.map, options_.shards,
      [this](absl::Duration wait) { return interruption_.Sleep(wait); },
      interruption_.cancel_switch());
  return absl::OkStatus();
}

absl::Status Evaluator::Serve(const Heartbeat::Order& order) {
  const absl::Time begin = SteadyNow();
  if (absl::Status status = Prepare(); !status.ok()) return status;
  const absl::StatusOr<WeightsReader::Reading> reading = reader_->Read(plan_->weights_host());
  if (!reading.ok()) return reading.status();
  plan_->WeightsArrived({0, options_.map.parameters()});

  const absl::StatusOr<TestMeasures> measures = MeasureOnTest(*plan_, test_, [&](size_t measured) {
    heartbeat_.OnMeasured(order.number, measured);
    return !interruption_.interrupted();
  });
  if (!measures.ok()) return measures.status();
  return reporter_.Report({.order = order,
                           .reading = *reading,
                           .measures = *measures,
                           .test_examples = test_.count(),
                           .duration = SteadyNow() - begin},
                          plan_->weights_host());
}

}  // namespace slipstream
