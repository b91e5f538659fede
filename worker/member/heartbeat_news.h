#ifndef SLIPSTREAM_WORKER_MEMBER_HEARTBEAT_NEWS_H_
#define SLIPSTREAM_WORKER_MEMBER_HEARTBEAT_NEWS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/protocol/view.h"
#include "proto/coordinator.pb.h"

namespace slipstream {

/// Keeps what the coordinator's answers to a worker's heartbeats have said so far.
struct HeartbeatNews {
  /// The weights of the run are to be measured.
  struct Order {
    uint64_t number = 0;
    uint32_t epoch = 0;
    bool is_final = false;

    /// Set if the measured weights are to be saved.
    bool saves = false;
  };

  /// The run's phase; absent before the first answer.
  std::optional<Phase> phase;

  /// Why the run failed, if it did.
  std::string failure;

  /// Set once the coordinator has asked the workers to end; never cleared again.
  bool work_ends = false;

  /// The number of mini-batches that the coordinator wants of the next pushes; 0 if it has named
  /// none.
  uint64_t steps = 0;

  /// The newest order.
  std::optional<Order> order;

  void Note(const v1::HeartbeatReply& reply);
  bool HasOrder(uint64_t newer_than) const { return order && order->number > newer_than; }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_MEMBER_HEARTBEAT_NEWS_H_
