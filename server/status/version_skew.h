#ifndef SLIPSTREAM_SERVER_STATUS_VERSION_SKEW_H_
#define SLIPSTREAM_SERVER_STATUS_VERSION_SKEW_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace slipstream {

/// Measures how far the shards' versions are apart. Shards report at different moments, and a shard
/// makes many versions between two reports. So versions are compared at one moment, that of the
/// oldest of the shards' newest reports, and are taken to rise evenly from one report to the next.
///
/// Not thread-safe: one owner, which serialises calls.
class VersionSkew {
 public:
  static constexpr size_t kReportsKept = 16;

  /// Notes a report. The reports of one shard come in order of time.
  void Note(ShardId shard, Version version, absl::Time now);

  /// Returns the largest version minus the smallest, rounded; 0 for fewer than two shards. A shard
  /// that has been silent for longer than the kept reports of another go back is compared with the
  /// oldest of these.
  uint64_t Skew() const;

 private:
  using Report = std::pair<absl::Time, Version>;

  static double VersionAt(absl::Time time, const std::deque<Report>& reports);

  std::map<ShardId, std::deque<Report>> reports_;  // Oldest first; none is empty.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_VERSION_SKEW_H_
