#ifndef SLIPSTREAM_WORKER_ALGORITHM_ALGORITHM_MAKERS_H_
#define SLIPSTREAM_WORKER_ALGORITHM_ALGORITHM_MAKERS_H_

#include <memory>

#include "worker/algorithm/worker_algorithm.h"

namespace slipstream {

// The file of each algorithm defines one of these makers for the registry, worker_algorithms.cc.

std::unique_ptr<const WorkerAlgorithm> MakeGradient();
std::unique_ptr<const WorkerAlgorithm> MakeLocalSgd();
std::unique_ptr<const WorkerAlgorithm> MakeDownpour();

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_ALGORITHM_ALGORITHM_MAKERS_H_
