#ifndef SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_EXCHANGE_COSTS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_EXCHANGE_COSTS_H_

#include <cstdint>
#include <limits>

namespace slipstream {

// Models of communication: pure functions. Times are in seconds; α is LinkCosts::latency, B its
// bytes_per_second.

/// A host's link, the same in each direction.
struct LinkCosts {
  /// α: how long a byte is on its way.
  double latency = 0;

  /// B, of each direction.
  double bytes_per_second = std::numeric_limits<double>::infinity();

  /// LogP's o: how long a processor is busy with one message (Culler et al., PPoPP 1993).
  double message = 0;
};

/// Returns how long a link is taken by `bytes` in so many messages. LogP's gap g is the larger one
/// of o and of what the link takes for a message; where messages are small, o decides.
double LinkSeconds(const LinkCosts& link, double bytes, double messages);

/// Returns the time of an exchange of M bytes, both pushed and pulled, by λ workers at once with S
/// servers on machines of their own: max(2M/B, 2λM/(SB)) + 2α.
double ServersSeconds(const LinkCosts& link, double bytes, uint32_t workers, uint32_t servers);

/// Returns the time of a ring all-reduce: 2(λ − 1)/λ · M/B + 2(λ − 1)α.
double RingSeconds(const LinkCosts& link, double bytes, uint32_t workers);

/// Returns the shortest time in which n hosts that compute sum up M bytes each with the help of k
/// hosts that do not: 2n(n − 1)M/((n² + kn − 2k)B) (BytePS: Jiang et al., OSDI 2020). REQUIRES: n
/// ≥ 1, k ≤ n; with more helpers than hosts they have no more to give.
double BytePsSeconds(double bytes, double bytes_per_second, uint32_t hosts, uint32_t helpers);

/// How many additions of gradients an update takes in all, and how many of them one after another.
/// By Brent's bound P processors need at most work/P + depth.
struct SumCosts {
  uint32_t work = 0;
  uint32_t depth = 0;
};

/// Returns the costs of a sum of λ gradients at one place, or, if `fanout` is not 0, by aggregators
/// for so many workers each, and then at one place.
SumCosts SumOf(uint32_t workers, uint32_t fanout);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_EXCHANGE_COSTS_H_
