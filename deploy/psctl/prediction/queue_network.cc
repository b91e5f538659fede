#include "deploy/psctl/prediction/queue_network.h"

#include <algorithm>
#include <cstddef>

#include "common/base/check.h"

namespace slipstream {
namespace {

/// Returns the part of a station's demand for which customers queue: none if there is a channel for
/// each.
double Queued(const Station& station, uint32_t customers) {
  return station.channels >= customers && station.channels > 1 ? 0
                                                               : station.demand / station.channels;
}

}  // namespace

NetworkFlow SolveNetwork(uint32_t customers, double think, const std::vector<Station>& stations) {
  PS_CHECK(customers > 0);
  NetworkFlow flow;
  flow.residence.resize(stations.size());
  std::vector<double> waiting(stations.size());  // The mean number at each station.
  for (uint32_t number = 1; number <= customers; ++number) {
    flow.cycle = think;
    for (size_t i = 0; i < stations.size(); ++i) {
      const double queued = Queued(stations[i], customers);
      flow.residence[i] = stations[i].demand + queued * waiting[i];
      flow.cycle += flow.residence[i];
    }
    const double rate = flow.cycle > 0 ? number / flow.cycle : 0;
    for (size_t i = 0; i < stations.size(); ++i) {
      waiting[i] = rate * Queued(stations[i], customers) * (1 + waiting[i]);
    }
  }
  double demands = 0;
  for (const Station& station : stations) {
    demands += station.demand;
    flow.busiest = std::max(flow.busiest, customers * station.demand / station.channels);
  }
  flow.cycle_min = std::max(think + demands, flow.busiest);
  flow.cycle_max = think + customers * demands;
  return flow;
}

}  // namespace slipstream
