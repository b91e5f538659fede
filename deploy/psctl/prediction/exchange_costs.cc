#include "deploy/psctl/prediction/exchange_costs.h"

#include <algorithm>

namespace slipstream {

double LinkSeconds(const LinkCosts& link, double bytes, double messages) {
  return std::max(bytes / link.bytes_per_second, messages * link.message);
}

double ServersSeconds(const LinkCosts& link, double bytes, uint32_t workers, uint32_t servers) {
  const double busiest = std::max(1.0, static_cast<double>(workers) / servers);
  return 2 * bytes / link.bytes_per_second * busiest + 2 * link.latency;
}

double RingSeconds(const LinkCosts& link, double bytes, uint32_t workers) {
  const double steps = 2.0 * (workers - 1);
  return steps / workers * bytes / link.bytes_per_second + steps * link.latency;
}

double BytePsSeconds(double bytes, double bytes_per_second, uint32_t hosts, uint32_t helpers) {
  if (hosts < 2) return 0;
  const double n = hosts;
  const double k = std::min(helpers, hosts);
  return 2 * n * (n - 1) * bytes / ((n * n + k * n - 2 * k) * bytes_per_second);
}

SumCosts SumOf(uint32_t workers, uint32_t fanout) {
  const uint32_t work = workers > 0 ? workers - 1 : 0;
  if (fanout == 0 || workers == 0) return {.work = work, .depth = work};
  const uint32_t groups = (workers + fanout - 1) / fanout;
  return {.work = work, .depth = std::min(fanout, workers) - 1 + groups - 1};
}

}  // namespace slipstream
