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

void Returns::Return(const ServerReport& report, Life life, const SavedVersion& from) {
  PS_CHECK(life > HighestLife(report));
  Shard& shard = shards_[Value(report.shard)];
  shard.order = {.life = life, .from = from};
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
  return shard.is_lost || !report.initialized || report.life != shard.order.life;
}

Life Returns::HighestLife(const ServerReport& report) const {
  Life highest = std::max(shards_[Value(report.shard)].order.life, report.life);
  for (const SavedVersion& saved : report.saved) highest = std::max(highest, saved.life);
  return highest;
}

Life Returns::NewestLife() const {
  Life newest{};
  for (const Shard& shard : shards_) newest = std::max(newest, shard.order.life);
  return newest;
}

std::vector<ShardReturn> Returns::orders() const {
  const auto is_in_first_life = [](const Shard& shard) { return shard.order.life == Life{}; };
  if (std::ranges::all_of(shards_, is_in_first_life)) return {};
  std::vector<ShardReturn> orders;
  for (const Shard& shard : shards_) {
    orders.push_back(shard.is_lost ? ShardReturn() : shard.order);
  }
  return orders;
}

}  // namespace slipstream
