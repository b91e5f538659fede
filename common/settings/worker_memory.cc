#include "common/settings/worker_memory.h"

#include <algorithm>

#include "common/base/encoding.h"

namespace slipstream {

WorkerMemory WorkerMemoryNeeded(const NetShapes& net, const RunSpec& run, bool on_processor) {
  const uint64_t parameters = net.layout.parameters();
  uint64_t of_example = 0;
  for (const ExampleShape& shape : net.shapes) of_example += shape.elements();
  if (!on_processor) of_example = 0;

  const uint64_t slots = run.training.pipeline_depth;
  const uint64_t threads = run.worker.threads;
  const uint64_t plans = threads > 1 ? threads : slots;
  uint64_t values = plans * (2 * parameters + run.training.batch_size * of_example);
  if (threads > 1) values += parameters;  // The weights that they share.

  const uint64_t states = RowOf(run.optimizer.kind).state_arrays;
  uint64_t arrays = 0;
  if (RowOf(run.worker.algorithm).has_local_weights) {
    arrays += 1 + states;  // The anchor, and the state of the steps' rule.
    if (run.worker.lands_apart()) ++arrays;
    if (run.worker.fragments() > 1) ++arrays;
  }
  if (run.workers_make_weights()) arrays += states;
  if (RowOf(run.wire.push_codec).feeds_error_back) arrays += slots;
  values += arrays * parameters;
  const bool measures = run.evaluation.by == EvaluationSpec::By::kWorkers;
  const uint64_t of_measuring = measures ? parameters + kTestBatchSize * of_example : 0;
  return {.training = values * sizeof(float), .evaluation = of_measuring * sizeof(float)};
}

}  // namespace slipstream
