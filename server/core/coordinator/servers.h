#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_SERVERS_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_SERVERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/saved_version.h"

namespace slipstream {

/// The report that a shard server sends with every call.
struct ServerReport {
  ShardId shard{};

  /// A random number, one per process, that tells a restarted server from a repeated call.
  uint64_t instance = 0;

  /// Rises from report to report of the process.
  uint64_t number = 0;
  std::string address;

  /// The run whose orders it follows; 0 before the first.
  uint64_t run = 0;

  /// Whether the shard may go on from an older state than was known.
  bool accepts_rollback = false;

  /// The number of the newest orders that it has taken. The fields below hold under these orders.
  uint64_t orders_seen = 0;
  bool initialized = false;
  bool drained = false;

  /// The generation of the shard; of meaning if it is initialized.
  Generation generation{};

  /// The checkpoints that it could go on from, oldest first, and whether these are all: it has
  /// looked for those that earlier processes made.
  std::vector<SavedVersion> saved;
  bool knows_saved = false;

  /// Set if its last try to write a checkpoint failed. It tries again by itself.
  bool cannot_save = false;

  /// Why the server cannot take part. Empty if it can.
  std::string failure;

  /// For how many members' gradients the server has memory; 0 while it does not know.
  uint32_t members_max = 0;
  Version version{};

  /// The number of mini-batches done in closed rounds, if this shard hands them out.
  uint64_t batches_of_rounds = 0;

  /// The newest gradient that a member has pushed to the shard: `batch_end` is one more than its
  /// last mini-batch, `clock` is the member's clock at that push.
  struct Pushed {
    WorkerId worker{};
    Incarnation incarnation{};
    uint64_t batch_end = 0;
    WorkerClock clock{};

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.worker, self.incarnation, self.batch_end, self.clock);
    }
  };
  std::vector<Pushed> pushed;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.shard, self.instance, self.number, self.address, self.orders_seen,
            self.initialized, self.drained, self.generation, self.saved, self.failure,
            self.members_max, self.version, self.batches_of_rounds, self.pushed);
  }
};

/// The shard servers that have reported, with the last report of each.
///
/// A shard is served by one process. Another process may take its place only when the first has
/// been silent for longer than `takeover`. The process of shard 0 is also the coordinator's: if the
/// coordinator was restored, the process that it knew for shard 0 is gone, and another may take its
/// place at once.
///
/// Not thread-safe: one owner, which serialises calls.
class Servers {
 public:
  static constexpr size_t kAddressBytesMax = 256;

  /// How long a process must have been silent before another one takes its place that listens at
  /// the same address: it does not have its port any more. Servers report several times a second.
  static constexpr absl::Duration kSilenceAtItsAddress = absl::Seconds(1);

  static constexpr size_t kFormerMax = 16;

  /// The most checkpoints that a report names.
  static constexpr size_t kSavedMax = 256;

  /// The highest generation that is accepted, so that counting on from it is safe.
  static constexpr Generation kGenerationMax{uint64_t{1} << 62};

  /// More versions than a shard makes between two of its reports.
  static constexpr uint64_t kVersionsUnheardMax = uint64_t{1} << 24;

  static constexpr absl::Duration kTellInterval = absl::Seconds(1);

  struct Server {
    ServerReport report;
    absl::Time last_heard;

    /// The newest version that a process of the shard has told of.
    Version newest{};

    /// The instances of the processes whose place this one has taken, the newest kFormerMax.
    std::deque<uint64_t> former = {};

    /// False if the report was restored, and no other has come since.
    bool is_heard = true;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.report, self.newest, self.former);
    }
  };

  Servers(uint32_t shards, absl::Duration takeover) : takeover_(takeover), servers_(shards) {}

  /// kReplaced: another process has taken the place of one that is gone, and does not have its
  /// weights yet.
  enum class Arrival : uint8_t { kFirst, kKnown, kReplaced };

  /// Records a report; of one that is older than the last of its process, only that it came. The
  /// gradients that a shard has had stay known until it goes on in another process. Fails
  /// if the shard does not exist, if another process serves it and was heard within `takeover`, or
  /// if the address, a generation or the number of checkpoints is out of bounds.
  absl::StatusOr<Arrival> Record(const ServerReport& report, absl::Time now);

  /// Does not count `gap` as silence: for so long, until `now`, this process could hear nobody.
  void Forgive(absl::Duration gap, absl::Time now);

  /// Notes that what Parts has read comes from before a restart of the coordinator: no server has
  /// been heard since, and silence counts from now on.
  void OnRestored(absl::Time now);

  const std::vector<std::optional<Server>>& servers() const { return servers_; }

  /// Returns the servers' addresses by shard. REQUIRES: AllSynced().
  std::vector<std::string> Addresses() const;

  /// Returns the address of the shard's server; empty if there is no such shard, or its server has
  /// not reported.
  std::string AddressOf(ShardId shard) const;

  /// Returns true if a server may have come back at another address than members were told.
  bool may_have_moved() const { return may_have_moved_; }
  bool AllSynced() const;

  /// Returns whether every server has reported since the coordinator began or was restored.
  bool AllHeard() const;

  /// Returns whether a server has not reported since the coordinator was restored. Until it has,
  /// the restored state may be an older copy.
  bool AnyUnheard() const;

  /// Returns whether shards have made versions that a restarted coordinator should know of, to find
  /// that a directory is an older copy; true at most once in kTellInterval.
  bool TakeNews(absl::Time now);

  /// Returns the newest version of the shard that was told of before, if by this report the shard
  /// goes on from an older one; nothing otherwise.
  std::optional<Version> NewerThan(const ServerReport& report) const;

  /// Forgets that version, as the shard may go on.
  void ForgetNewest(ShardId shard) { servers_[Value(shard)]->newest = {}; }

  /// Returns the newest checkpoint that every server has by its report; nothing if there is none.
  std::optional<SavedVersion> NewestSavedByAll() const;

  /// Returns whether every server has reported that it took orders of this number or newer ones.
  bool AllSeen(uint64_t orders) const;
  bool AllInitialized(uint64_t orders) const;
  bool AllDrained(uint64_t orders) const;

  /// Does the check of AllSeen, but leaves out servers that were never heard of or have been silent
  /// for longer than `silence`.
  bool AllSeenOrSilent(uint64_t orders, absl::Duration silence, absl::Time now) const;

  /// Returns one more than the last mini-batch of the newest gradient that any shard has from this
  /// incarnation; 0 if there is none. The newest gradient has the latest clock. Its mini-batches
  /// may have lower numbers than earlier ones: another worker may have given them back.
  uint64_t PushedEnd(WorkerId worker, Incarnation incarnation) const;

  /// Fails if a worker cannot have measured weights of these versions: there is one for each shard,
  /// and no shard has made a newer one. `has_ended`: no shard makes more than one further.
  /// Otherwise a shard may have made some since its last report.
  absl::Status CheckMeasured(std::span<const Version> versions, bool has_ended) const;

  /// Returns for how many members' gradients every server has memory.
  uint32_t MembersMax() const;

  /// Lists the shards that have never reported, such as "shard 1 (node1:7070), shard 3
  /// (node3:7070)". `addresses` has the addresses of all shards in the settings.
  std::string Missing(std::span<const std::string> addresses) const;

  /// Returns a shard that has reported before and has been silent for longer than `silence`.
  std::optional<ShardId> FindSilent(absl::Duration silence, absl::Time now) const;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.servers_);
  }

 private:
  // Constant after construction.
  const absl::Duration takeover_;

  // The servers by shard; each is empty until its first report.
  std::vector<std::optional<Server>> servers_;

  bool may_have_moved_ = false;
  bool has_news_ = false;
  absl::Time told_ = absl::InfinitePast();
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_SERVERS_H_
