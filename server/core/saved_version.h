#ifndef SLIPSTREAM_SERVER_CORE_SAVED_VERSION_H_
#define SLIPSTREAM_SERVER_CORE_SAVED_VERSION_H_

#include <compare>
#include <cstdint>
#include <optional>

#include "common/base/ids.h"

namespace slipstream {

/// Names a checkpoint of one shard. A later generation is newer, whatever its version.
struct SavedVersion {
  Generation generation{};
  Version version{};

  /// The stage of the run that the shard was in.
  uint32_t stage = 0;

  friend auto operator<=>(const SavedVersion&, const SavedVersion&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.generation, self.version, self.stage);
  }
};

/// The order to a shard to go on from one of its checkpoints, if it is not in this generation yet.
struct ShardReturn {
  /// Generation 0 is the first one, into which no shard returns.
  Generation generation{};
  SavedVersion from;

  friend bool operator==(const ShardReturn&, const ShardReturn&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.generation, self.from);
  }
};

/// The order to every shard to save its state.
struct SaveOrder {
  /// Rises from order to order; 0 if there was none yet.
  uint64_t number = 0;

  /// The version to save, where shards return together: a shard that is beyond it saves nothing.
  /// Else 0: each shard saves the next version that it makes.
  Version version{};

  /// The newest checkpoint that all shards have, where they return together. A shard keeps it until
  /// there is a newer one.
  std::optional<SavedVersion> safe;

  friend bool operator==(const SaveOrder&, const SaveOrder&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.number, self.version, self.safe);
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SAVED_VERSION_H_
