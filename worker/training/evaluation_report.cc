#include "worker/training/evaluation_report.h"

#include <spdlog/spdlog.h>

#include <climits>
#include <string>

#include "common/base/log_line.h"
#include "common/kernels/finite.h"
#include "common/log/log.h"
#include "common/model_file/weights_digest.h"
#include "common/wire/shard_wire.h"
#include "common/wire/wire_text.h"

namespace slipstream {
namespace {

// The most bytes that a report has for the reason of a failed save.
constexpr size_t kReasonBytesMax = 1000;

void LogResult(const v1::EvaluationStatus& result) {
  LogLine line("evaluated", {{"epoch", result.epoch()},
                             {"epochs_measured", result.epochs_measured()},
                             {"version", result.versions(0)},
                             {"loss", result.test_loss()},
                             {"seconds", result.seconds()}});
  if (result.has_test_accuracy()) line.fields.emplace_back("accuracy", result.test_accuracy());
  Log(spdlog::level::info, line);
}

/// Saves the weights if the run keeps any, and records the outcome in `result`. Logs a warning if
/// final weights are not kept.
void Keep(const ModelKeeper& keeper, const ModelFacts& facts, std::span<const float> weights,
          const std::vector<StoredTensor>& beside, v1::EvaluationStatus& result) {
  if (!keeper.keeps()) {
    if (facts.is_final) {
      LogWarning(
          "the trained weights are not kept: model.save_dir is empty, and this worker was given no "
          "other directory (--save-dir of ps_worker)");
    }
    return;
  }
  const absl::StatusOr<std::string> path = keeper.Keep(facts, weights, beside);
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

}  // namespace

bool AreFinite(std::span<const float> weights) { return AllFinite({std::as_bytes(weights)}); }

v1::ReportRequest ReportOn(const MeasuredWeights& measured, std::span<const float> weights,
                           const Identity& identity, uint64_t examples_per_epoch,
                           const ModelKeeper& keeper) {
  const Heartbeat::Order& order = measured.order;
  v1::ReportRequest request;
  *request.mutable_identity() = ToWire(identity);
  request.set_evaluation(order.number);
  v1::EvaluationStatus& result = *request.mutable_result();
  result.set_epoch(order.epoch);
  result.set_final(order.is_final);
  result.set_epochs_measured(static_cast<double>(measured.reading.examples) /
                             static_cast<double>(examples_per_epoch));
  for (const Version version : measured.reading.versions) result.add_versions(Value(version));
  result.set_test_loss(measured.measures.loss);
  if (measured.measures.accuracy) result.set_test_accuracy(*measured.measures.accuracy);
  result.set_examples(measured.test_examples);
  result.set_seconds(absl::ToDoubleSeconds(measured.duration));
  LogResult(result);
  if (order.is_final || order.saves) {
    const std::string sha256 = WeightsSha256(weights);
    if (order.is_final) {
      request.set_weights_sha256(sha256);
      LogInfo("final weights", {{"sha256", sha256}});
    }
    if (order.saves) {
      Keep(keeper,
           {order.epoch, order.is_final, measured.reading.versions, measured.measures,
            measured.test_examples, sha256},
           weights, measured.beside, result);
    }
  }
  return request;
}

absl::Status EvaluationReporter::Report(const MeasuredWeights& measured,
                                        std::span<const float> weights) const {
  const absl::Status reported =
      coordinator_.Report(ReportOn(measured, weights, identity_, examples_per_epoch_, keeper_));
  // FAILED_PRECONDITION: the order was withdrawn, perhaps for another worker. This is no reason to
  // end.
  return absl::IsFailedPrecondition(reported) ? absl::OkStatus() : reported;
}

}  // namespace slipstream
