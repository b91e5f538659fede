#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_RETURNS_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_RETURNS_H_

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "server/core/coordinator/servers.h"
#include "server/core/saved_version.h"

namespace slipstream {

/// Keeps in which generation each shard is to be, and which shards have lost their state and have
/// yet to be told from which checkpoint they go on. Its owner chooses the checkpoint.
///
/// Where no log is kept, a shard loses its state with its process. An order to return is meant for
/// the process that the shard had when it was given: the next process may not follow it, as the
/// generation that it names may have gone on for a while. So the order is withdrawn when the next
/// process reports, until there is one for it.
///
/// Invariant: the generations of a shard's orders rise.
///
/// Not thread-safe: one owner, which serialises calls.
class Returns {
 public:
  struct Shard {
    /// The newest order. It has generation 0 if there was none.
    ShardReturn order;

    /// The process that the order was given to; 0 if there was none.
    uint64_t instance = 0;

    /// Set while the shard has lost its state and needs an order.
    bool is_lost = false;

    /// The newest version of the present generation that is known.
    Version newest{};

    /// How many versions were known and lost, in all returns together. There may have been more:
    /// those that the shard made after its last report, and if the coordinator was restored
    /// meanwhile, all that its journal does not have.
    uint64_t versions_lost = 0;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.order, self.instance, self.is_lost, self.newest, self.versions_lost);
    }
  };

  explicit Returns(uint32_t shards) : shards_(shards) {}

  /// Takes the newest report of a shard that has had its weights. It has lost them if its server is
  /// not initialized and was not told to return, or was told to return to a checkpoint that it
  /// cannot read.
  void OnReport(const ServerReport& report);

  /// Notes that shards are in step: each has had the version before the newest that any has, as
  /// that one's gradients were computed from it. So a restored coordinator learns from the others
  /// how far a shard was whose process is gone.
  void OnInStep();

  /// Tells the shard of this report to go on from `from`, in `generation`. REQUIRES: the generation
  /// is higher than HighestGeneration(report).
  void Return(const ServerReport& report, Generation generation, const SavedVersion& from);

  /// Notes the number of the orders that announced the newest returns.
  void OnAnnounced(uint64_t orders) { announced_ = orders; }

  /// Returns whether the shard is not where it is to be: it has no weights, or those of an earlier
  /// generation.
  bool IsAway(const ServerReport& report) const;

  /// Returns whether the shard's server has lost its state.
  bool IsLost(ShardId shard) const { return shards_[Value(shard)].is_lost; }

  /// Returns whether the server knows which checkpoints it has: it looks for them once it has heard
  /// from the coordinator which run this is.
  static bool KnowsItsCheckpoints(const ServerReport& report) {
    return report.initialized || report.knows_saved;
  }

  /// Returns the highest generation that the shard may have been in.
  Generation HighestGeneration(const ServerReport& report) const;

  /// Returns the newest generation that a shard was ordered to begin.
  Generation NewestGeneration() const;

  /// Returns the orders, by shard; none while all are in their first generation. An order that is
  /// withdrawn has generation 0.
  std::vector<ShardReturn> orders() const;

  const std::vector<Shard>& shards() const { return shards_; }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.shards_, self.announced_);
  }

 private:
  std::vector<Shard> shards_;
  uint64_t announced_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_RETURNS_H_
