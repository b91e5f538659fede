#ifndef SLIPSTREAM_WORKER_TRAINING_EVALUATION_REPORT_H_
#define SLIPSTREAM_WORKER_TRAINING_EVALUATION_REPORT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/protocol/shard_messages.h"
#include "proto/coordinator.pb.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/weights_reader.h"
#include "worker/training/heartbeat.h"
#include "worker/training/measures.h"
#include "worker/training/model_keeper.h"

namespace slipstream {

/// The result of one evaluation: which weights were measured, for which order, and how good they
/// are.
struct MeasuredWeights {
  Heartbeat::Order order;
  WeightsReader::Reading reading;
  TestMeasures measures;

  /// The number of examples in the test set; 0 if it is unknown.
  uint64_t test_examples = 0;

  /// How long it took to read and to measure the weights.
  absl::Duration duration;

  /// The tensors that belong to the model beside its weights; they are saved with them.
  std::vector<StoredTensor> beside = {};
};

/// Returns whether all weights are finite: a maximum or an inactive unit can hide others from the
/// loss.
bool AreFinite(std::span<const float> weights);

/// Logs an evaluation, saves exactly the weights that were measured if the order asks for it, and
/// returns the report to the coordinator. A failed save is part of the report.
/// `examples_per_epoch`: the number of examples in the training set; not 0.
v1::ReportRequest ReportOn(const MeasuredWeights& measured, std::span<const float> weights,
                           const Identity& identity, uint64_t examples_per_epoch,
                           const ModelKeeper& keeper);

/// Reports evaluations to the coordinator, whoever made them. If the order asks for it, saves
/// exactly the weights that were measured.
///
/// Thread-safe: const after construction.
class EvaluationReporter {
 public:
  /// `examples_per_epoch`: as for ReportOn. `keeper` and `coordinator` must outlive the reporter.
  EvaluationReporter(const Identity& identity, uint64_t examples_per_epoch,
                     const ModelKeeper& keeper, const CoordinatorClient& coordinator)
      : identity_(identity),
        examples_per_epoch_(examples_per_epoch),
        keeper_(keeper),
        coordinator_(coordinator) {}

  /// Logs, saves and reports the evaluation of these weights. Returns OK also if the order was
  /// withdrawn in the meantime. A failed save is part of the report, and no failure.
  absl::Status Report(const MeasuredWeights& measured, std::span<const float> weights) const;

 private:
  const Identity identity_;
  const uint64_t examples_per_epoch_;
  const ModelKeeper& keeper_;
  const CoordinatorClient& coordinator_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_EVALUATION_REPORT_H_
