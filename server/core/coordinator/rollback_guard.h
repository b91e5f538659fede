#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_ROLLBACK_GUARD_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_ROLLBACK_GUARD_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/core/coordinator/servers.h"
#include "server/core/orders.h"

namespace slipstream {

/// Finds out that a directory, of the coordinator or of a shard, is an older copy of what others
/// know to have been written: to go on from it would do work twice, or lose acknowledged pushes.
///
/// Not thread-safe: one owner, which serialises calls.
class RollbackGuard {
 public:
  /// `keeps_log`: a server tells nothing that a crash of it can undo, so that what it has told can
  /// be held against it.
  explicit RollbackGuard(bool keeps_log) : keeps_log_(keeps_log) {}

  /// The coordinator was told that its state may be an older one.
  void Accept() { accepts_ = true; }

  /// DATA_LOSS once a server has shown that the coordinator's state is an older copy.
  const absl::Status& found() const { return found_; }

  /// Returns by how many orders the coordinator's state is behind what the server knows, most often
  /// 0. UNAVAILABLE if it may not go on from there; FAILED_PRECONDITION if the orders are those of
  /// another run.
  absl::StatusOr<uint64_t> OrdersBehind(const ServerReport& report, const ServerOrders& orders);

  /// Returns the newest version of the shard that was known, if the shard goes on from an older
  /// one, as its server was told to; most often nothing. DATA_LOSS if it was not.
  absl::StatusOr<std::optional<Version>> ShardBehind(const ServerReport& report,
                                                     const Servers& servers) const;

 private:
  const bool keeps_log_;
  bool accepts_ = false;
  absl::Status found_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_ROLLBACK_GUARD_H_
