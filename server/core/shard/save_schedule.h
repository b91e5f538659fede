#ifndef SLIPSTREAM_SERVER_CORE_SHARD_SAVE_SCHEDULE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_SAVE_SCHEDULE_H_

#include <optional>

#include "common/base/ids.h"
#include "server/core/orders.h"

namespace slipstream {

/// When a shard saves its state, if it does. A save is due from its order, or from the version that
/// the order names, until the open round is empty and the newest version has not been saved.
///
/// Not thread-safe: one owner.
class SaveSchedule {
 public:
  /// Takes an order. Returns false if it is not newer than those before.
  bool Order(const SaveOrder& order, Version decided);

  /// Notes that this version is decided.
  void OnDecided(Version version) {
    if (order_.version != Version{} && version == order_.version) is_due_ = true;
  }

  /// Notes that initial weights are in place. Those of an earlier grant may have been saved.
  void OnInitialized() {
    last_saved_.reset();
    is_due_ = true;
  }

  /// Returns whether the state is to be saved now. `is_drained`: the shard has come to its last
  /// version.
  bool IsTime(Version decided, bool is_round_empty, bool is_drained) const;

  /// Notes that the shell is told to save this version.
  void OnSaved(Version version) {
    last_saved_ = version;
    is_due_ = false;
  }

  /// The version that the shell was told to save last; empty before the first.
  std::optional<Version> last_saved() const { return last_saved_; }

  /// Begins a later generation. The checkpoint is of the generation before: a shard that is drained
  /// saves one of this generation, too.
  void BeginGeneration() { last_saved_.reset(); }

  /// Notes that the process has ended, and `saved` is on the disk. A save that did not come to it
  /// is due again.
  void EndProcess(std::optional<Version> saved);

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.order_, self.is_due_, self.last_saved_);
  }

 private:
  SaveOrder order_;  // The newest.
  bool is_due_ = false;
  std::optional<Version> last_saved_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_SAVE_SCHEDULE_H_
