#ifndef SLIPSTREAM_SERVER_CORE_SHARD_READER_PULLS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_READER_PULLS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// The pulls of readers who are not members that are served and not done. The number of versions
/// that they read is bounded, so that a slow reader makes a shard keep a few versions at most.
///
/// Not thread-safe: one owner.
class ReaderPulls {
 public:
  /// The number of versions that may be read when they are not kept any more, all readers together.
  static constexpr size_t kVersionsMax = 2;

  /// Returns whether a reader may read the version beside those of others. `versions_kept`: the
  /// number of published versions that are kept anyway.
  bool HasPlaceFor(Version version, uint32_t pulls_max, uint32_t versions_kept) const;

  void Begin(CallId call, Version version) { pulls_.emplace(call, Pull{.version = version}); }

  /// REQUIRES: the pull has begun and not ended.
  void End(CallId call);
  bool Contains(CallId call) const { return pulls_.contains(call); }
  size_t size() const { return pulls_.size(); }

  /// Returns the pulls that have become too slow for the versions kept, from `oldest_kept` on, by
  /// name. They do not count from now on.
  std::vector<CallId> NoteLagging(Version oldest_kept);

  /// Notes that the process has ended.
  void EndProcess() { pulls_.clear(); }

  /// For tests: ends the process if an invariant does not hold.
  void CheckInvariants(Version oldest_kept, uint32_t pulls_max, uint32_t versions_kept) const;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.pulls_);
  }

 private:
  struct Pull {
    Version version{};

    /// Set if the reader has been too slow, and the shell was told to end the pull.
    bool has_lagged = false;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.version, self.has_lagged);
    }
  };

  /// Returns the versions that readers who have not lagged are reading.
  std::set<Version> VersionsRead() const;

  std::map<CallId, Pull> pulls_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_READER_PULLS_H_
