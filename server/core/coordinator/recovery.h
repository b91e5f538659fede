#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_RECOVERY_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_RECOVERY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/settings/run_spec.h"
#include "server/core/coordinator/returns.h"
#include "server/core/coordinator/saves.h"
#include "server/core/coordinator/servers.h"
#include "server/core/saved_version.h"

namespace slipstream {

/// Has shards go on whose servers come back, and orders the checkpoints from which they can.
///
/// Where a shard keeps a log, the run waits until it is where it was. Else it returns to its newest
/// checkpoint, or all shards to a common one where rounds keep them in step. Has no effect in runs
/// whose servers make no checkpoints.
///
/// Not thread-safe: one owner, which serialises calls.
class Recovery {
 public:
  /// A shard that was told to return.
  struct Returned {
    ShardId shard{};
    Generation generation{};
    Version version{};
    uint64_t versions_lost = 0;
  };

  struct Outcome {
    /// Why the run cannot go on. Empty if it can.
    std::string failure;

    /// OnAnnounced follows if there are some.
    std::vector<Returned> returned;

    /// Set if all shards return to this version.
    std::optional<SavedVersion> together;
  };

  /// `servers` must outlive the object.
  Recovery(const RunSpec& spec, const Servers& servers);

  bool keeps_log() const { return keeps_log_; }

  /// Whether the servers make checkpoints.
  bool saves() const { return saves_.has_value(); }
  const SaveOrder& save_order() const;
  const Returns& returns() const { return returns_; }

  /// Whether shards that come back return to a version that all have saved. Shards that keep a log
  /// lose no version, and so do not return at all.
  bool ReturnsTogether(bool in_rounds) const { return in_rounds && !keeps_log_; }

  /// Takes the newest report of a shard that has had its weights.
  Outcome OnReport(const ServerReport& report, bool in_rounds);

  /// Notes which checkpoints there are. REQUIRES: every shard has reported.
  void TakeSaved(ShardId newest, bool in_rounds);

  /// Notes the number of the orders that announced the newest returns.
  void OnAnnounced(uint64_t orders) { returns_.OnAnnounced(orders); }

  /// Returns whether a shard is not where it is to be.
  bool AnyAway() const;

  struct SaveStep {
    bool is_new = false;     // There is another order; OnSaveAnnounced follows.
    bool has_saved = false;  // An order that somebody waits for was carried out.
  };

  /// Gives the next order to save if it is due.
  SaveStep OrderSaveIfDue(bool in_rounds, absl::Time now);
  void OnSaveAnnounced(uint64_t orders) { saves_->OnAnnounced(orders); }

  /// As Saves::Await. This, OnSaveAnnounced and ProgressOf: REQUIRES: saves().
  uint64_t AwaitSave(uint64_t number) { return saves_->Await(number); }
  SaveProgress ProgressOf(uint64_t number, bool in_rounds) const;

  /// Returns whether every shard has saved its newest version.
  bool AllHaveSavedNewest() const;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.returns_);
    if (self.saves_.has_value()) archive(*self.saves_);
  }

 private:
  Outcome AwaitLog(const ServerReport& report);
  Outcome ReturnOne(const ServerReport& report);
  Outcome ReturnAll();
  Returned Return(const ServerReport& report, Generation generation, const SavedVersion& from);

  // Constant after construction.
  const bool keeps_log_;  // As DurabilitySpec::keeps_log.
  const Servers& servers_;

  Returns returns_;

  // Set if servers make checkpoints.
  std::optional<Saves> saves_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_RECOVERY_H_
