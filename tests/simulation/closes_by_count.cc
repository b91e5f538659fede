#include "tests/simulation/closes_by_count.h"

#include "tests/simulation/mutated/shard_core.h"

namespace slipstream {

std::unique_ptr<ShardDecider> MakeCoreThatClosesByCount(const ShardCore::Options& options) {
  using Core = closes_by_count::ShardCore;
  const Core::Options same = {.consistency = options.consistency,
                              .staleness_scaling = options.staleness_scaling,
                              .learning_rate = options.learning_rate,
                              .schedule = options.schedule,
                              .epochs = options.epochs,
                              .is_first = options.is_first,
                              .gradients_in_flight = options.gradients_in_flight,
                              .push_bytes_max = options.push_bytes_max};
  return std::make_unique<DeciderOf<Core>>(same);
}

}  // namespace slipstream
