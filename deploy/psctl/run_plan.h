#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_PLAN_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/tensor_layout.h"
#include "common/run/run_spec.h"

namespace slipstream {

/// What a configuration amounts to, worked out before anything runs.
struct RunPlan {
  size_t parameters = 0;
  std::vector<ParameterRange> shards;

  /// c, and λ/c: the n of softsync that it really is where n does not divide λ.
  uint32_t round_size = 1;
  double effective_n = 1;

  /// (dλ − 1)/c, the conservation law for d gradients in flight per worker; 0 under hardsync. Where
  /// a max_staleness that lets nothing beyond it join an update is less, that: then it is at most.
  double expected_staleness = 0;
  bool is_staleness_bounded = false;

  /// The memory that the largest shard takes at its peak; and the part of it for weights that are
  /// kept because gradients under way were computed from them, 0 unless compensation uses these.
  uint64_t server_bytes = 0;
  uint64_t base_weights_bytes = 0;

  /// Unknown where the data decides.
  std::optional<uint64_t> batches_per_epoch;
};

/// Fails with INVALID_ARGUMENT if the net's shapes do not fit, or it cannot be cut into that many
/// shards.
absl::StatusOr<RunPlan> PlanRun(const RunSpec& spec);

std::string PlanText(const RunSpec& spec, const RunPlan& plan);
nlohmann::ordered_json PlanJson(const RunSpec& spec, const RunPlan& plan);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_PLAN_H_
