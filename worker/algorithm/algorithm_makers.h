#ifndef SLIPSTREAM_WORKER_ALGORITHM_ALGORITHM_MAKERS_H_
#define SLIPSTREAM_WORKER_ALGORITHM_ALGORITHM_MAKERS_H_

#include <memory>

#include "worker/algorithm/worker_algorithm.h"

namespace slipstream {

// The file of each algorithm defines one of these makers for the registry, worker_algorithms.cc.

std::unique_ptr<const WorkerAlgorithm> MakeGradient(const AlgorithmOptions& options);
std::unique_ptr<const WorkerAlgorithm> MakeLocalSgd(const AlgorithmOptions& options);
std::unique_ptr<const WorkerAlgorithm> MakeDiloco(const AlgorithmOptions& options);
std::unique_ptr<const WorkerAlgorithm> MakeDownpour(const AlgorithmOptions& options);
std::unique_ptr<const WorkerAlgorithm> MakeElasticAveraging(const AlgorithmOptions& options);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_ALGORITHM_ALGORITHM_MAKERS_H_
