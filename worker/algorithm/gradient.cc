// Parallel SGD as parameter servers have it from the first on: a worker pushes the gradient of each
// mini-batch as it is, and steps are the servers' affair.

#include "worker/algorithm/algorithm_makers.h"

namespace slipstream {

std::unique_ptr<const WorkerAlgorithm> MakeGradient() {
  return std::make_unique<WorkerAlgorithm>();
}

}  // namespace slipstream
