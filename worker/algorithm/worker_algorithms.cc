// The registry of worker algorithms.

#include <algorithm>

#include "worker/algorithm/algorithm_makers.h"
#include "worker/algorithm/worker_algorithm.h"

namespace slipstream {
namespace {

struct Maker {
  AlgorithmKind kind;
  std::unique_ptr<const WorkerAlgorithm> (*make)(const AlgorithmOptions& options);
};

constexpr Maker kMakers[] = {
    {AlgorithmKind::kGradient, MakeGradient},       {AlgorithmKind::kLocalSgd, MakeLocalSgd},
    {AlgorithmKind::kDiloco, MakeDiloco},           {AlgorithmKind::kFedbuff, MakeLocalSgd},
    {AlgorithmKind::kDownpour, MakeDownpour},       {AlgorithmKind::kEasgd, MakeElasticAveraging},
    {AlgorithmKind::kEamsgd, MakeElasticAveraging},
};

// Programs that publish whole weights train by themselves.
static_assert(std::ranges::all_of(kAlgorithmRows, [](const AlgorithmRow& row) {
  const bool is_for_programs = row.pushes == PushKind::kValues;
  return std::ranges::count(kMakers, row.kind, &Maker::kind) == (is_for_programs ? 0 : 1);
}));

}  // namespace

std::unique_ptr<const WorkerAlgorithm> MakeWorkerAlgorithm(AlgorithmKind kind,
                                                           const AlgorithmOptions& options) {
  return std::ranges::find(kMakers, kind, &Maker::kind)->make(options);
}

}  // namespace slipstream
