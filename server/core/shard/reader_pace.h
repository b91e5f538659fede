#ifndef SLIPSTREAM_SERVER_CORE_SHARD_READER_PACE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_READER_PACE_H_

#include <cstdint>
#include <map>

#include "common/base/ids.h"
#include "server/core/orders.h"

namespace slipstream {

/// Keeps workers from getting further ahead of the slowest of some readers than it wants to lag
/// behind. A reader counts as holding the version that it was sent last, from when it is sent: by
/// the time that all of it has come, no more than its limit of versions has been made since.
/// Versions that were on their way when workers were held back come in addition: one for each
/// gradient in flight but the first, where each makes a version.
///
/// Not thread-safe: one owner.
class ReaderPace {
 public:
  /// Replaces the readers that are waited for. One that is new counts as holding `published`, so
  /// that nobody waits for it before it could have read anything.
  void Adopt(const LagLimits& limits, Version published);

  /// Notes that a reader is sent a version. Has no effect if the reader is not waited for.
  void OnSent(uint64_t reader, Version version);

  /// Returns whether the version after `decided` would leave a reader too far behind.
  bool HoldsBack(Version decided) const;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.places_);
  }

 private:
  struct Place {
    uint64_t lag_max = 0;  // At least 1, so that there is a version that the reader can go on to.
    Version held{};

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.lag_max, self.held);
    }
  };
  std::map<uint64_t, Place> places_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_READER_PACE_H_
