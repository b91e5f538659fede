#ifndef SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_PREDICTION_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_PREDICTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/prediction/run_costs.h"

namespace slipstream {

/// The prediction for a run. Times are in seconds.
struct Prediction {
  /// Such as "softsync (n = 4)".
  std::string policy;
  bool is_all_reduce = false;
  uint32_t workers = 1;

  /// The whole model in fp32, and as one push of it travels.
  double model_bytes = 0;
  double push_bytes = 0;

  /// From one push of a worker to its next, and its parts: `waiting` is for slower workers and in
  /// queues. What runs beside computing is not in `exchange`.
  double step = 0;
  double compute = 0;
  double exchange = 0;
  double update = 0;
  double waiting = 0;

  /// Of all workers, as far as their gradients count; with the least and the most that these costs
  /// allow, whatever their distribution.
  double examples_per_second = 0;
  double examples_per_second_min = 0;
  double examples_per_second_max = 0;

  /// Times the rate of one machine that trains alone, without servers; and what it would be if
  /// nothing had to be exchanged, R: less than the workers where they share processors.
  double speed_up = 0;
  double speed_up_max = 0;

  double updates_per_second = 0;
  double pushes_per_second = 0;

  /// n = λ/c, the mean of σ, at most if `is_staleness_bounded`, and P(σ > 2n).
  double effective_n = 1;
  double staleness = 0;
  bool is_staleness_bounded = false;
  double staleness_beyond = 0;

  /// How much of the time the busiest server's link (the busier direction; with all-reduce a
  /// worker's), and the machine's processors, are in use; no processors if machines are many.
  double link_use = 0;
  std::optional<double> processors_use;

  /// What the busiest server, and each worker, receives and sends in a second. In a tree the
  /// server's come from aggregators.
  double server_bytes_in = 0;
  double server_bytes_out = 0;
  double worker_bytes_out = 0;
  double worker_bytes_in = 0;

  uint64_t server_memory = 0;
  uint64_t worker_memory = 0;
  uint64_t machine_memory = 0;  // Of all processes, if one machine has them.

  /// Compute / (compute + communication that was not hidden), once a run goes on evenly, and with
  /// the first weights, which all workers take at once (with free lanes their aggregators for
  /// them); absent if nothing says how long a run is.
  double overlap = 0;
  std::optional<double> overlap_whole;

  /// The number of workers from which on the busiest station (a server's link or, within a machine,
  /// its processors) has no time left; absent for policies in step.
  std::optional<double> saturation;
};

/// The cost of an example for one machine that trains alone.
double AloneSeconds(const RunSpec& run, const RunCosts& costs);

/// Predicts a run under its last policy, with its number of workers. Fails as PlanRun does, and
/// with INVALID_ARGUMENT if the workers bring the model.
///
/// The model: a worker computes, and exchanges values with all servers at once. A server's link
/// (each direction) and the server serve one exchange after another: a closed network of queues.
/// Policies in step wait for the K fastest workers, each of which begins when its own weights have
/// come: whole messages follow one another on a link. A shard large enough to be exchanged layer by
/// layer sends its gradients beside the backward pass, two thirds of computing, and fetches weights
/// beside the forward pass, and all exchange at once; free lanes and pipelines hide all that fits
/// into a step.
absl::StatusOr<Prediction> Predict(const RunSpec& run, const RunCosts& costs);

/// Returns the run for each policy that it could have with so many workers, its own first:
/// hardsync, softsync with n = 1 and n = λ, ssp, backup and allreduce. Workers with local steps
/// have only their own.
std::vector<RunSpec> PolicyVariants(const RunSpec& run, uint32_t workers);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_PREDICTION_H_
