#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_SERVERS_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_SERVERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"

namespace slipstream {

/// What a shard server says of itself with every call.
struct ServerReport {
  ShardId shard{};

  /// Random, one per process: tells a restarted server from a repeated call.
  uint64_t instance = 0;
  std::string address;

  /// The number of the newest orders it has taken; what follows holds under them.
  uint64_t orders_seen = 0;
  bool initialized = false;
  bool drained = false;

  /// Why it cannot take part; empty if nothing keeps it.
  std::string failure;

  /// It has memory for the gradients of so many members; 0 while it does not know.
  uint32_t members_max = 0;
  Version version{};

  /// Mini-batches of the rounds that have closed, where this shard hands them out.
  uint64_t batches_of_rounds = 0;

  /// The newest gradient that a member has pushed to the shard: one more than its last mini-batch,
  /// and the member's clock with it.
  struct Pushed {
    WorkerId worker{};
    Incarnation incarnation{};
    uint64_t batch_end = 0;
    WorkerClock clock{};
  };
  std::vector<Pushed> pushed;
};

/// The shard servers: which are there, and what each said last.
///
/// A shard is served by one process. Another takes its place only when the first has been silent
/// for `takeover`.
///
/// Not thread-safe: one owner, which serialises calls.
class Servers {
 public:
  static constexpr size_t kAddressBytesMax = 256;

  struct Server {
    ServerReport report;
    absl::Time last_heard;
  };

  Servers(uint32_t shards, absl::Duration takeover) : takeover_(takeover), servers_(shards) {}

  /// kReplaced: another process has taken the place of one that is gone, whose weights are lost.
  enum class Arrival : uint8_t { kFirst, kKnown, kReplaced };

  /// Records a report. Fails if the shard does not exist, is served by another process that was
  /// heard lately, or the address is out of bounds.
  absl::StatusOr<Arrival> Record(const ServerReport& report, absl::Time now);

  /// For `gap` until now nobody could be heard: it does not count as silence.
  void Forgive(absl::Duration gap, absl::Time now);

  const std::vector<std::optional<Server>>& servers() const { return servers_; }
  bool AllSynced() const;

  /// Every server has taken orders of this number or a newer one, and said so.
  bool AllSeen(uint64_t orders) const;
  bool AllInitialized(uint64_t orders) const;
  bool AllDrained(uint64_t orders) const;

  /// As AllSeen, but without those that are silent for longer than `silence`.
  bool AllSeenOrSilent(uint64_t orders, absl::Duration silence, absl::Time now) const;

  /// One more than the last mini-batch of the newest gradient that any shard has of this
  /// incarnation; 0: none. The newest has the latest clock, as a unit that another worker gave back
  /// may lie before those that came first.
  uint64_t PushedEnd(WorkerId worker, Incarnation incarnation) const;

  /// All servers have memory for the gradients of so many members.
  uint32_t MembersMax() const;

  /// The shards never heard of, like "1, 3".
  std::string Missing() const;

  /// A shard that was there and is silent for longer than `silence`.
  std::optional<ShardId> FindSilent(absl::Duration silence, absl::Time now) const;

 private:
  // Constant after construction.
  const absl::Duration takeover_;

  // By shard; empty until first heard.
  std::vector<std::optional<Server>> servers_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_SERVERS_H_
