#ifndef SLIPSTREAM_SERVER_CONTROL_PLANE_SERVER_TALK_H_
#define SLIPSTREAM_SERVER_CONTROL_PLANE_SERVER_TALK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "proto/coordinator.pb.h"
#include "server/control_plane/server_orders.h"

namespace slipstream {

/// Decides what a shard's server, or an aggregator, says to the coordinator again and again, and
/// what the answers mean. It sends nothing and waits for nothing itself.
///
/// Not thread-safe: one owner.
class ServerTalk {
 public:
  struct Options {
    /// The shard that the server has, or that the aggregator sends pushes to.
    ShardId shard{};

    /// The address at which workers reach this server.
    std::string address;

    /// Where the server's HTTP port is; empty if it has none.
    std::string http_address = {};

    /// The memory that this process may use.
    uint64_t memory_limit = 0;

    /// The settings in canonical form. The coordinator refuses a server whose settings differ.
    std::string settings = {};

    /// A random number, one per process.
    uint64_t instance = 0;

    /// Whether the shard may go on from an older state than it has told of.
    bool accepts_rollback = false;

    /// How long the coordinator may wait with its answer. The shard's figures are never much older.
    absl::Duration wait = absl::Milliseconds(250);

    /// The same while the run waits for this shard's report.
    absl::Duration wait_eager = absl::Milliseconds(20);

    /// Pauses after a failed call grow from the first to the second.
    absl::Duration pause_min = absl::Milliseconds(100);
    absl::Duration pause_max = absl::Seconds(2);
  };

  /// `sink` must outlive this object.
  ServerTalk(const Options& options, OrdersSink& sink)
      : options_(options), sink_(sink), pause_(options.pause_min) {}

  /// Returns the next request. It asks the coordinator to answer after wait() at the latest.
  v1::SyncServerRequest Ask();
  absl::Duration wait() const;

  /// Notes the answer, and hands its orders on. Fails if this server cannot take part any longer.
  absl::Status OnReply(const v1::SyncServerReply& reply);

  /// Notes that the call has failed. Returns how long to wait before the next.
  absl::Duration OnFailure();

  const ServerOrders& orders() const { return orders_; }

 private:
  // Constant after construction.
  const Options options_;

  OrdersSink& sink_;
  uint64_t calls_ = 0;
  ServerOrders orders_;
  absl::Duration pause_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONTROL_PLANE_SERVER_TALK_H_
