#include "worker/training/evaluator.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/time/clock.h"
#include "common/model_file/weights_digest.h"
#include "common/wire/shard_wire.h"

namespace slipstream {
namespace {

constexpr uint32_t kBatchSize = 256;

/// Training on the same cores goes first.
constexpr int kNiceness = 10;

}  // namespace

Evaluator::Evaluator(const Options& options, const Dataset& test, Device& device,
                     const CoordinatorClient& coordinator, Heartbeat& heartbeat,
                     Interruption& interruption)
    : options_(options),
      test_(test),
      device_(device),
      coordinator_(coordinator),
      heartbeat_(heartbeat),
      interruption_(interruption),
      thread_([this] { Run(); }) {}

Evaluator::~Evaluator() { thread_.join(); }

void Evaluator::Run() {
  // Linux keeps niceness by thread; those that this one starts inherit it.
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
      device_.Prepare(options_.model, {.batch_size_max = kBatchSize, .trains = false});
  if (!plan.ok()) return plan.status();
  plan_ = *std::move(plan);
  reader_ = std::make_unique<WeightsReader>(
      options_.identity, options_.servers, options_.map, options_.group,
      [this](absl::Duration wait) { return interruption_.Sleep(wait); },
      interruption_.cancel_switch());
  return absl::OkStatus();
}

absl::Status Evaluator::Serve(const Heartbeat::Order& order) {
  const absl::Time begin = absl::Now();
  if (absl::Status status = Prepare(); !status.ok()) return status;
  const absl::StatusOr<std::vector<Version>> versions =
      reader_->Read(options_.has_rounds, plan_->weights_host());
  if (!versions.ok()) return versions.status();
  plan_->WeightsArrived({0, options_.map.parameters()});

  v1::ReportRequest request;
  *request.mutable_identity() = ToWire(options_.identity);
  request.set_evaluation(order.number);
  v1::EvaluationStatus& result = *request.mutable_result();
  result.set_epoch(order.epoch);
  result.set_final(order.is_final);
  for (const Version version : *versions) result.add_versions(Value(version));
  const absl::StatusOr<Measures> measures = Measure();
  if (!measures.ok()) return measures.status();
  result.set_test_loss(measures->loss);
  result.set_test_accuracy(measures->accuracy);
  result.set_examples(test_.count());
  result.set_seconds(absl::ToDoubleSeconds(absl::Now() - begin));
  spdlog::info("evaluated epoch={} version={} accuracy={:.4f} loss={:.4f} seconds={:.2f}",
               order.epoch, result.versions(0), result.test_accuracy(), result.test_loss(),
               result.seconds());
  if (order.is_final) {
    request.set_weights_sha256(WeightsSha256(plan_->weights_host()));
    spdlog::info("final weights sha256={}", request.weights_sha256());
  }
  const absl::Status reported = coordinator_.Report(request);
  // The order was taken back, and another worker may have it: no reason to end.
  return absl::IsFailedPrecondition(reported) ? absl::OkStatus() : reported;
}

absl::StatusOr<Evaluator::Measures> Evaluator::Measure() {
  double loss = 0;
  uint64_t correct = 0;
  for (size_t first = 0; first < test_.count(); first += kBatchSize) {
    if (interruption_.interrupted()) return absl::CancelledError("stopped");
    const size_t count = std::min<size_t>(kBatchSize, test_.count() - first);
    const size_t elements = test_.shape.elements();
    const absl::StatusOr<StepResult> step = plan_->Evaluate(
        {.examples = std::span(test_.examples).subspan(first * elements, count * elements),
         .labels = std::span(test_.labels).subspan(first, count)});
    if (!step.ok()) return step.status();
    loss += static_cast<double>(step->loss) * static_cast<double>(count);
    correct += step->correct;
  }
  const auto examples = static_cast<double>(test_.count());
  return Measures{loss / examples, static_cast<double>(correct) / examples};
}

}  // namespace slipstream
