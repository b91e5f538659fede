// The part of Session that has the weights measured, when a heartbeat orders it.

#include <limits>
#include <utility>

#include "common/process/steady_time.h"
#include "worker/python/session.h"
#include "worker/training/evaluation_report.h"
#include "worker/training/model_keeper.h"

namespace slipstream {

absl::Status Session::BeginEvaluation() {
  if (reader_ == nullptr || !is_ordered()) {
    return absl::AlreadyExistsError("no evaluation was ordered");
  }
  const std::optional<Heartbeat::Order> order = heartbeat_->AwaitOrder(last_order_);
  if (!order.has_value()) return Cause(absl::CancelledError("stopped"));
  const absl::Time begin = SteadyNow();
  measured_weights_ = std::make_shared<std::vector<float>>(layout_.parameters());
  absl::StatusOr<WeightsReader::Reading> reading = Read(*measured_weights_);
  if (!reading.ok()) return reading.status();
  evaluation_ = {.order = *order, .reading = *std::move(reading), .begin = begin};
  return absl::OkStatus();
}

void Session::OnMeasured(uint64_t examples) {
  if (evaluation_.has_value()) heartbeat_->OnMeasured(evaluation_->order.number, examples);
}

absl::Status Session::EndEvaluation(const TestMeasures& measures, uint64_t examples,
                                    const std::string& directory,
                                    std::vector<StoredTensor> beside) {
  const std::optional<OpenEvaluation> evaluation = std::exchange(evaluation_, std::nullopt);
  if (!evaluation.has_value()) return absl::AlreadyExistsError("no evaluation was begun");
  const auto kept = std::exchange(measured_weights_, nullptr);
  const std::span<const float> weights = *kept;
  MeasuredWeights measured = {.order = evaluation->order,
                              .reading = evaluation->reading,
                              .measures = measures,
                              .test_examples = examples,
                              .duration = SteadyNow() - evaluation->begin,
                              .beside = std::move(beside)};
  if (!AreFinite(weights)) measured.measures.loss = std::numeric_limits<double>::quiet_NaN();
  RunSpec settings = settings_;
  settings.model_files.overwrite = true;  // The program names the directory with each call.
  const ModelKeeper keeper(joined_.identity.run, {directory}, settings, layout_);
  const EvaluationReporter reporter(joined_.identity, epoch_examples_, keeper, coordinator_);
  last_order_ = evaluation->order.number;
  has_measured_ = true;
  return Cause(reporter.Report(measured, weights));
}

}  // namespace slipstream
