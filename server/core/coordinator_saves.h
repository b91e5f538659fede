#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_SAVES_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_SAVES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/coordinator_servers.h"
#include "server/core/saved_version.h"

namespace slipstream {

/// Decides when the shards save their state next, and knows the newest state that all have saved.
///
/// Where shards are in step, all save the same version. It has to lie ahead of them, as the order
/// takes a while to arrive: by as many versions as they make in about a second. If a shard was
/// beyond the version when it learned of it, the next one lies twice as far ahead.
///
/// The next order is given when the interval has passed and the shards have carried out the last
/// one. A shard that went beyond the version without having named its checkpoint is probably still
/// writing, so it gets more time. If it needs much more, writing has failed, and the next order
/// tries again.
///
/// Not thread-safe: one owner, which serialises calls.
class Saves {
 public:
  static constexpr uint64_t kMarginMin = 2;
  static constexpr uint64_t kMarginMax = uint64_t{1} << 20;

  /// After how many intervals a shard that is still writing is no longer waited for.
  static constexpr int kIntervalsMax = 10;

  Saves(absl::Duration interval, uint32_t shards) : interval_(interval), shards_(shards) {}

  /// Takes the reports of all shards, of which the one of this shard is new. `in_step`: the shards
  /// make the same versions.
  void OnReport(const Servers& servers, ShardId newest, bool in_step);

  /// Gives the next order if it is due. Time counts from the first call, and from the first one
  /// after OnReturn. REQUIRES: every shard has reported.
  void OrderIfDue(const Servers& servers, bool in_step, absl::Time now);

  /// Notes the number of the orders by which shards learn of the newest order.
  void OnAnnounced(uint64_t orders) { announced_ = orders; }

  /// Notes that a shard has gone back to a checkpoint: what was ordered before is not waited for.
  void OnReturn();

  /// The order so far; `number` 0 before the first.
  const SaveOrder& order() const { return order_; }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.shards_, self.order_, self.announced_, self.is_settled_, self.factor_);
  }

 private:
  enum class Progress : uint8_t { kDone, kAhead, kWriting, kMissed };

  struct Shard {
    // At the time of the order: the shard's version and its newest checkpoint.
    Version version{};
    std::optional<SavedVersion> saved;

    // The shard's version when it first said that it knows the order.
    std::optional<Version> learned_at;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.version, self.saved, self.learned_at);
    }
  };

  Progress ProgressOf(const ServerReport& report, bool in_step) const;
  uint64_t Margin(Version newest, absl::Time now) const;

  // Constant after construction.
  const absl::Duration interval_;

  std::vector<Shard> shards_;
  SaveOrder order_;
  uint64_t announced_ = 0;

  // Set if nobody waits for what the order brings.
  bool is_settled_ = true;

  // How often the margin was doubled, as a factor.
  uint64_t factor_ = 1;

  // The time of the order, or from which the interval counts, and the newest version then.
  std::optional<absl::Time> since_;
  Version newest_then_{};
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_SAVES_H_
