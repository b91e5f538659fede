#ifndef SLIPSTREAM_SERVER_STORAGE_COORDINATOR_JOURNAL_H_
#define SLIPSTREAM_SERVER_STORAGE_COORDINATOR_JOURNAL_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace slipstream {

/// The part of a run's coordinator that survives its process.
struct SavedCoordinator {
  /// The settings that the run was started with, and those in force since they were changed.
  std::string settings;
  std::string settings_now;

  /// Coordinator::Save().
  std::string state;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.settings, self.settings_now, self.state);
  }
};

/// The file DIRECTORY/coordinator.state. It holds the whole state of the newest run, a few
/// kilobytes, and is replaced as one: readers find the state before or after a change, never a
/// mixture, also after a crash of the machine. It is kept when the run is over.
///
/// Failures are DATA_LOSS, and name the file and the reason.

/// Replaces the state. It is on the disk when this returns. After a failure the older state is in
/// place, and the call may be repeated: it begins with a new file each time.
absl::Status WriteJournal(const std::string& directory, const SavedCoordinator& saved);

/// Reads the state; nothing if there is none. Fails if it is damaged, or if a later release has
/// written it.
absl::StatusOr<std::optional<SavedCoordinator>> ReadJournal(const std::string& directory);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_COORDINATOR_JOURNAL_H_
