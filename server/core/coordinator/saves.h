#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_SAVES_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_SAVES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/coordinator/servers.h"
#include "server/core/saved_version.h"

namespace slipstream {

struct SaveProgress {
  struct Shard {
    /// The newest checkpoint in the shard's present generation.
    std::optional<SavedVersion> saved;

    /// Set if that is what was ordered: the newest version that the shard had when it learned of
    /// the order, or a later one.
    bool has_saved = false;

    /// Set while its server has come back, and has yet to go on.
    bool is_away = false;
  };

  /// By shard.
  std::vector<Shard> shards;

  /// Set once all have saved; where shards return together, the same version.
  bool is_complete = false;
};

/// Decides when the shards save their state next, and knows the newest state that all have saved.
///
/// Where shards return together, all save the same version. It has to lie ahead of them, as the
/// order takes a while to arrive: by as many versions as they make in about a second. If a shard
/// was beyond the version when it learned of it, the next one lies twice as far ahead.
///
/// The next order is given when the interval has passed and the shards have carried out the last
/// one. A shard that has not named its checkpoint is still writing: with a newer order it would
/// hold one more version in memory. If it cannot write, its server tries again by itself. Where
/// shards return together, the others could do nothing with newer checkpoints until then, and would
/// fill their disks; where each saves for itself, they go on without it.
///
/// Somebody may wait for an order (Await). Then it does not wait for the interval, and neither does
/// the one that follows it if a shard learned of it too late.
///
/// Not thread-safe: one owner, which serialises calls.
class Saves {
 public:
  static constexpr uint64_t kMarginMin = 2;
  static constexpr uint64_t kMarginMax = uint64_t{1} << 20;

  /// How long shards that save each for themselves wait for one that is still writing. Its disk
  /// probably hangs.
  static constexpr absl::Duration kWritingMax = absl::Minutes(10);

  Saves(absl::Duration interval, uint32_t shards) : interval_(interval), shards_(shards) {}

  /// Takes the reports of all shards, of which the one of this shard is new. `together`: shards
  /// that come back return together, to a version that all have.
  void OnReport(const Servers& servers, ShardId newest, bool together);

  /// Gives the next order if it is due, and notes whether the one that is awaited was carried out.
  /// Time counts from the first call, and from the first one after OnInterrupted. REQUIRES: every
  /// shard has reported.
  void OrderIfDue(const Servers& servers, bool together, absl::Time now);

  /// Makes an order due: the next one, if `number` is 0, else the one to which an earlier call gave
  /// this number, or the next one if that one will not be carried out any more. Returns its number.
  uint64_t Await(uint64_t number);

  /// Returns whether an awaited order has not been carried out by all shards.
  bool is_awaited() const { return awaited_ > carried_out_; }

  /// Returns the newest order that all shards carried out while somebody waited; 0 before the
  /// first.
  uint64_t carried_out() const { return carried_out_; }

  /// Returns whether the order of this number, or a later one that took its place, was carried out.
  /// REQUIRES: Await(number) was called.
  bool IsCarriedOut(uint64_t number) const { return carried_out_ >= number; }

  /// Returns whether the shard has carried out the newest order, and this is not older than
  /// `number`.
  bool HasSaved(const ServerReport& report, uint64_t number, bool together) const;

  /// Returns the newest checkpoint of the generation that the shard is in.
  static std::optional<SavedVersion> NewestOfGeneration(const ServerReport& report);

  /// Notes the number of the orders by which shards learn of the newest order.
  void OnAnnounced(uint64_t orders) { announced_ = orders; }

  /// Notes that a shard has another process, or has gone back to a checkpoint: it may never carry
  /// out what was ordered before.
  void OnInterrupted();

  /// Notes that all shards go back to a checkpoint, and abandon those that are newer.
  void OnReturned(const SavedVersion& from);

  /// The order so far; `number` 0 before the first.
  const SaveOrder& order() const { return order_; }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.shards_, self.order_, self.announced_, self.is_settled_, self.factor_);
  }

 private:
  enum class Progress : uint8_t { kDone, kAhead, kWriting, kMissed };

  struct Shard {
    // The shard's version at the time of the order, and when it first said that it knows the order.
    Version version{};
    std::optional<Version> learned_at;

    // The newest version that the shard had saved at the time of the order, or was about to save
    // for an earlier one, in its generation then.
    std::optional<Version> saved;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.version, self.learned_at, self.saved);
    }
  };

  Progress ProgressOf(const ServerReport& report, bool together) const;
  bool HasOrdered(const ServerReport& report) const;
  bool HasSavedSince(const ServerReport& report) const;
  bool AllHaveSaved(const Servers& servers, bool together) const;
  uint64_t Margin(Version newest, absl::Time now) const;

  // Constant after construction.
  const absl::Duration interval_;

  std::vector<Shard> shards_;
  SaveOrder order_;
  uint64_t announced_ = 0;

  // Set if nobody waits for what the order brings.
  bool is_settled_ = true;

  // The newest order that somebody waits for, and the newest one of these that was carried out. Who
  // waits asks again, so they are not part of the saved state.
  uint64_t awaited_ = 0;
  uint64_t carried_out_ = 0;

  // How often the margin was doubled, as a factor.
  uint64_t factor_ = 1;

  // The time of the order, or from which the interval counts, and the newest version then.
  std::optional<absl::Time> since_;
  Version newest_then_{};
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_SAVES_H_
