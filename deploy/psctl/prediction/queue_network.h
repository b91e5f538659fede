#ifndef SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_QUEUE_NETWORK_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_QUEUE_NETWORK_H_

#include <cstdint>
#include <vector>

namespace slipstream {

/// Where customers queue, such as a server's link: they are served one after another.
struct Station {
  /// How long it serves one customer.
  double demand = 0;

  /// How many it serves at once, such as a machine's processors. At least 1.
  double channels = 1;
};

/// What happens in a closed network, where customers (workers) think (compute) and then visit each
/// station once, for ever.
struct NetworkFlow {
  /// The mean time from one visit of a customer to its next.
  double cycle = 0;

  /// The mean time at each station, waiting included.
  std::vector<double> residence;

  /// N D_max: how long the busiest station takes to serve every customer once.
  double busiest = 0;

  /// The least and the largest cycle that is possible with these demands, whatever their
  /// distribution: N D + Z, where each customer waits for all others everywhere, and max(D + Z,
  /// N D_max).
  double cycle_max = 0;
  double cycle_min = 0;
};

/// Solves the network by mean value analysis (Reiser and Lavenberg, JACM 1980): exact where service
/// times are exponential; where they vary less, customers wait less. A station of several channels
/// counts as one that is so many times faster and a delay that makes up for it (Seidmann et al.,
/// 1987), or if it has one for each customer, as a delay. REQUIRES: there are customers.
NetworkFlow SolveNetwork(uint32_t customers, double think, const std::vector<Station>& stations);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_QUEUE_NETWORK_H_
