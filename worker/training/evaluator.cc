#include "worker/training/evaluator.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <climits>
#include <optional>
#include <utility>

#include "common/base/log_line.h"
#include "common/log/log.h"
#include "common/model_file/weights_digest.h"
#include "common/process/steady_time.h"
#include "common/wire/shard_wire.h"
#include "common/wire/wire_text.h"
#include "worker/training/test_measures.h"

namespace slipstream {
namespace {

// The most bytes that a report has for the reason of a failed save.
constexpr size_t kReasonBytesMax = 1000;

/// Gives way to training on the same cores.
constexpr int kNiceness = 10;

}  // namespace

Evaluator::Evaluator(const Options& options, const Dataset& test, Device& device,
                     const ModelKeeper& keeper, const CoordinatorClient& coordinator,
                     Heartbeat& heartbeat, Interruption& interruption)
    : options_(options),
      test_(test),
      device_(device),
      keeper_(keeper),
      coordinator_(coordinator),
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
  const absl::StatusOr<WeightsReader::Reading> reading =
      reader_->Read(options_.stages_in_step, plan_->weights_host());
  if (!reading.ok()) return reading.status();
  plan_->WeightsArrived({0, options_.map.parameters()});

  v1::ReportRequest request;
  *request.mutable_identity() = ToWire(options_.identity);
  request.set_evaluation(order.number);
  v1::EvaluationStatus& result = *request.mutable_result();
  result.set_epoch(order.epoch);
  result.set_final(order.is_final);
  result.set_epochs_measured(static_cast<double>(reading->examples) /
                             static_cast<double>(options_.examples_per_epoch));
  for (const Version version : reading->versions) result.add_versions(Value(version));
  const absl::StatusOr<TestMeasures> measures = MeasureOnTest(*plan_, test_, [&](size_t measured) {
    heartbeat_.OnMeasured(order.number, measured);
    return !interruption_.interrupted();
  });
  if (!measures.ok()) return measures.status();
  result.set_test_loss(measures->loss);
  if (measures->accuracy) result.set_test_accuracy(*measures->accuracy);
  result.set_examples(test_.count());
  result.set_seconds(absl::ToDoubleSeconds(SteadyNow() - begin));
  LogLine line("evaluated", {{"epoch", order.epoch},
                             {"epochs_measured", result.epochs_measured()},
                             {"version", result.versions(0)},
                             {"loss", result.test_loss()},
                             {"seconds", result.seconds()}});
  if (measures->accuracy) line.fields.emplace_back("accuracy", *measures->accuracy);
  Log(spdlog::level::info, line);
  if (order.is_final || order.saves) {
    const std::string sha256 = WeightsSha256(plan_->weights_host());
    if (order.is_final) {
      request.set_weights_sha256(sha256);
      LogInfo("final weights", {{"sha256", sha256}});
    }
    if (order.saves) {
      Keep({order.epoch, order.is_final, reading->versions, *measures, test_.count(), sha256},
           result);
    }
  }
  const absl::Status reported = coordinator_.Report(request);
  // FAILED_PRECONDITION: the order was withdrawn, perhaps for another worker. This is no reason to
  // end.
  return absl::IsFailedPrecondition(reported) ? absl::OkStatus() : reported;
}

void Evaluator::Keep(const ModelFacts& facts, v1::EvaluationStatus& result) const {
  if (!keeper_.keeps()) {
    if (facts.is_final) {
      LogWarning(
          "the trained weights are not kept: model.save_dir is empty and --save-dir is not given");
    }
    return;
  }
  const absl::StatusOr<std::string> path = keeper_.Keep(facts, plan_->weights_host());
  if (path.ok()) {
    LogInfo("weights saved", {{"path", *path}, {"epoch", facts.epoch}});
    result.set_model_file(WireText(*path, PATH_MAX));
    return;
  }
  // A failed save does not end the run; the report tells its observers.
  const std::string reason(path.status().message());
  LogError("weights not saved", {{"epoch", facts.epoch}, {"reason", reason}});
  result.set_model_failure(WireText(reason, kReasonBytesMax));
}

}  // namespace slipstream
