#ifndef SLIPSTREAM_TESTS_SIMULATION_CLOSES_BY_COUNT_H_
#define SLIPSTREAM_TESTS_SIMULATION_CLOSES_BY_COUNT_H_

#include <memory>

#include "tests/simulation/shard_decider.h"

namespace slipstream {

/// A core made of the production sources with one line changed (see BUILD): rounds of members close
/// when as many pushes have come as there are members, whoever sent them.
std::unique_ptr<ShardDecider> MakeCoreThatClosesByCount(const ShardCore::Options& options);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_CLOSES_BY_COUNT_H_
