#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_AGGREGATORS_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_AGGREGATORS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// Names an aggregator by its group of workers and the shard that it sends their pushes to.
struct AggregatorId {
  uint32_t group = 0;
  ShardId shard{};

  friend bool operator==(const AggregatorId&, const AggregatorId&) = default;
};

/// The report that an aggregator sends with every call.
struct AggregatorReport {
  uint32_t group = 0;
  ShardId shard{};

  /// The same as in ServerReport.
  uint64_t instance = 0;
  uint64_t number = 0;
  std::string address;
  uint64_t orders_seen = 0;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.group, self.shard, self.instance, self.number, self.address, self.orders_seen);
  }
};

/// The aggregators that have reported (cluster.tree), with the last report of each.
///
/// Each place is filled by one process. Another process may take it only when the first has been
/// silent for longer than the lease; or for a moment, if it listens at the same address
/// (Servers::kSilenceAtItsAddress).
///
/// Not thread-safe: one owner, which serialises calls.
class Aggregators {
 public:
  struct Aggregator {
    AggregatorReport report;
    absl::Time last_heard;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.report);
    }
  };

  explicit Aggregators(const ClusterSpec& cluster);

  /// Whose report came: the first in its place, that of the process known there, or that of one
  /// which takes the place of another. kLate: the known process has sent a newer one.
  enum class Arrival : uint8_t { kFirst, kKnown, kReplaced, kLate };

  /// Records a report. A late one only tells that its process is heard. Fails if the run has no
  /// such aggregator, if another process is it and was heard too short a time ago, or if the
  /// address is out of bounds.
  absl::StatusOr<Arrival> Record(const AggregatorReport& report, absl::Time now);

  /// Does not count `gap` as silence: for so long, until `now`, this process could hear nobody.
  void Forgive(absl::Duration gap, absl::Time now);

  /// Notes that the reports are those that an earlier process of the coordinator had, as if each
  /// had come now.
  void OnRestored(absl::Time now);

  bool AllReported() const;

  /// Returns whether every aggregator has reported that it took orders of this number or newer
  /// ones, was never heard of, or has been silent for longer than `silence`.
  bool AllSeenOrSilent(uint64_t orders, absl::Duration silence, absl::Time now) const {
    return Behind(orders, silence, now).empty();
  }

  /// Returns those that AllSeenOrSilent waits for, by group and shard.
  std::vector<AggregatorId> Behind(uint64_t orders, absl::Duration silence, absl::Time now) const;

  /// Returns those that have never reported, by group and shard.
  std::vector<AggregatorId> Missing() const;

  /// Returns the addresses of the aggregators of the worker's group, in the order of shards; none
  /// if it is in no group. REQUIRES: AllReported().
  std::vector<std::string> AddressesFor(WorkerId worker) const;

  /// Returns how many there are to be.
  size_t size() const { return aggregators_.size(); }
  uint32_t groups() const { return cluster_.groups(); }
  uint32_t shards() const { return static_cast<uint32_t>(cluster_.servers.size()); }

  /// Returns what is known of an aggregator; nothing if it has never reported.
  const std::optional<Aggregator>& Of(uint32_t group, ShardId shard) const {
    return aggregators_[group * shards() + Value(shard)];
  }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.aggregators_);
  }

 private:
  AggregatorId IdAt(size_t place) const;

  const ClusterSpec cluster_;

  // By group and shard; each is empty until its first report.
  std::vector<std::optional<Aggregator>> aggregators_;
};

/// Returns a list such as "aggregator of group 1 for shard 0, aggregator of group 1 for shard 1";
/// the first of them if there are many.
std::string ListText(const std::vector<AggregatorId>& aggregators);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_AGGREGATORS_H_
