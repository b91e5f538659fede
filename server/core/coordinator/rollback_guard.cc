#include "server/core/coordinator/rollback_guard.h"

#include <fmt/format.h>

namespace slipstream {

absl::StatusOr<uint64_t> RollbackGuard::OrdersBehind(const ServerReport& report,
                                                     const ServerOrders& orders) {
  if (report.orders_seen <= orders.number) return 0;
  if (report.run != orders.run) {
    return absl::FailedPreconditionError(
        fmt::format("the server of shard {} follows orders of another run", Value(report.shard)));
  }
  if (!accepts_) {
    found_ = absl::DataLossError(fmt::format(
        "coordinator.state is an older copy: it ends with orders {}, and the server of shard {} "
        "has those of number {}. Put the newest one in its place; or with --accept-rollback go "
        "on from this one: work that was done since is done again, and counts twice",
        orders.number, Value(report.shard), report.orders_seen));
    return absl::UnavailableError("the coordinator ends: its state is an older copy");
  }
  return report.orders_seen - orders.number;
}

absl::StatusOr<std::optional<Version>> RollbackGuard::ShardBehind(const ServerReport& report,
                                                                  const Servers& servers) const {
  const std::optional<Version> known = servers.NewerThan(report);
  if (!keeps_log_ || !known.has_value()) return std::optional<Version>();
  if (report.accepts_rollback) return known;
  return absl::DataLossError(fmt::format(
      "the directory of shard {} is an older copy: it ends with version {}, and {} was on the disk "
      "and known. Put the newest one in its place; or with --accept-rollback go on from this one: "
      "what was pushed since is lost",
      Value(report.shard), Value(report.version), Value(*known)));
}

}  // namespace slipstream
