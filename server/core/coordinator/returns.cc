#include "server/core/coordinator/returns.h"

#include <algorithm>

#include "common/base/check.h"

namespace slipstream {

void Returns::OnReport(const ServerReport& report) {
  Shard& shard = shards_[Value(report.shard)];
  if (!IsAway(report)) {
    shard.newest = std::max(shard.newest, report.version);
    return;
  }
  if (!report.initialized && report.instance != shard.instance) {
    shard.is_lost = true;
    return;
  }
  const bool knows_order = report.orders_seen >= announced_;
  const bool has_it = std::ranges::find(report.saved, shard.order.from) != report.saved.end();
  if (knows_order && !has_it) shard.is_lost = true;
}

void Returns::OnInStep() {
  Version newest{};
  for (const Shard& shard : shards_) newest = std::max(newest, shard.newest);
  if (newest == Version{}) return;
  const Version before{Value(newest) - 1};
  for (Shard& shard : shards_) shard.newest = std::max(shard.newest, before);
}

void Returns::Return(const ServerReport& report, Generation generation, const SavedVersion& from) {
  PS_CHECK(generation > HighestGeneration(report));
  Shard& shard = shards_[Value(report.shard)];
  shard.order = {.generation = generation, .from = from};
  shard.instance = report.instance;
  shard.is_lost = false;
  // A restored coordinator may know less of the shard than the checkpoint tells.
  if (shard.newest > from.version) {
    shard.versions_lost += Value(shard.newest) - Value(from.version);
  }
  shard.newest = from.version;
}

bool Returns::IsAway(const ServerReport& report) const {
  const Shard& shard = shards_[Value(report.shard)];
  return shard.is_lost || !report.initialized || report.generation != shard.order.generation;
}

Generation Returns::HighestGeneration(const ServerReport& report) const {
  Generation highest = std::max(shards_[Value(report.shard)].order.generation, report.generation);
  for (const SavedVersion& saved : report.saved) highest = std::max(highest, saved.generation);
  return highest;
}

Generation Returns::NewestGeneration() const {
  Generation newest{};
  for (const Shard& shard : shards_) newest = std::max(newest, shard.order.generation);
  return newest;
}

std::vector<ShardReturn> Returns::orders() const {
  const auto is_in_first_generation = [](const Shard& shard) {
    return shard.order.generation == Generation{};
  };
  if (std::ranges::all_of(shards_, is_in_first_generation)) return {};
  std::vector<ShardReturn> orders;
  for (const Shard& shard : shards_) {
    orders.push_back(shard.is_lost ? ShardReturn() : shard.order);
  }
  return orders;
}

}  // namespace slipstream
