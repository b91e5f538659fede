// Parallel SGD as parameter servers have had it from the beginning: a worker pushes the gradient of
// each mini-batch unchanged, and only the servers take steps.

#include "worker/algorithm/algorithm_makers.h"

namespace slipstream {

std::unique_ptr<const WorkerAlgorithm> MakeGradient(const AlgorithmOptions&) {
  return std::make_unique<WorkerAlgorithm>();
}

}  // namespace slipstream
