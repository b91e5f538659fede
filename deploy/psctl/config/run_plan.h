#ifndef SLIPSTREAM_DEPLOY_PSCTL_CONFIG_RUN_PLAN_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CONFIG_RUN_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/tensor_layout.h"
#include "common/process/process_limits.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/config/data_memory.h"

namespace slipstream {

/// The properties of a run, computed from its configuration before anything runs.
struct RunPlan {
  /// Both are unknown, and server_bytes is, if the model is the workers'; `shards` is then empty.
  size_t parameters = 0;
  std::vector<ParameterRange> shards;

  /// c, and λ/c, which is the effective n of softsync where n does not divide λ.
  uint32_t round_size = 1;
  double effective_n = 1;

  /// The expected mean staleness: (dλ − 1)/c, by the conservation law for d gradients in flight per
  /// worker, and more where workers fetch weights less often than they push; 0 under hardsync. With
  /// free lanes it is less, as far as a gradient is sent in less time than the next is computed. At
  /// most the max_staleness, if that lets nothing beyond it join. Where aggregators combine the
  /// pushes of groups, groups and their pushes take the places of workers and gradients.
  double expected_staleness = 0;
  bool is_staleness_bounded = false;

  /// The memory that the largest shard takes at its peak, and the part of it for weights that are
  /// kept because gradients under way were computed from them. The part is 0 unless compensation
  /// uses it.
  uint64_t server_bytes = 0;
  uint64_t base_weights_bytes = 0;

  /// The main memory that a ps_worker takes beside its data, and the part of it for measurements on
  /// the test set: on a processor, unless compute.device is a GPU. Unknown as server_bytes is.
  uint64_t worker_bytes = 0;
  uint64_t evaluation_bytes = 0;

  /// The main memory of the data. Absent as DataMemoryNeeded says.
  std::optional<DataMemory> data;

  /// The main memory of all the run's processes together, if they run on one machine: without the
  /// data, if those are unknown. Unknown as server_bytes is.
  uint64_t machine_bytes = 0;

  /// Absent if it depends on the data.
  std::optional<uint64_t> batches_per_epoch;
};

/// Computes the plan. Fails with INVALID_ARGUMENT if the net's shapes do not fit, or if it cannot
/// be cut into that many shards.
absl::StatusOr<RunPlan> PlanRun(const RunSpec& spec);

/// Returns a warning if all processes of a run that has a plan need more than `available` bytes of
/// memory, which this machine has free; else empty.
std::string MemoryWarning(const RunSpec& spec, uint64_t available = AvailableMemoryBytes());

std::string PlanText(const RunSpec& spec, const RunPlan& plan);
nlohmann::ordered_json PlanJson(const RunSpec& spec, const RunPlan& plan);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CONFIG_RUN_PLAN_H_
