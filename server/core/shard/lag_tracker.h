#ifndef SLIPSTREAM_SERVER_CORE_SHARD_LAG_TRACKER_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_LAG_TRACKER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "common/base/ids.h"
#include "server/core/shard/histogram.h"

namespace slipstream {

/// Keeps the staleness of every gradient that joined a round, and of every update.
///
/// σ of a gradient is the version it is applied to minus its base version (1511.05950, section 3).
/// The update i−1 → i, triggered by gradients of base versions ⟨i₁ … i_c⟩, its vector clock, has
/// average staleness ⟨σ⟩ = (i − 1) − mean(i₁ … i_c) (1509.04210).
///
/// Not thread-safe: one owner, which serialises calls.
class LagTracker {
 public:
  /// histogram()[σ] counts the gradients of staleness σ; the last bucket also counts all above it.
  static constexpr size_t kBuckets = 1024;

  /// Returns the Percentile of a histogram of staleness, or `max`, the largest σ seen, if that
  /// falls into the last bucket. The histograms of several shards may be added up first.
  template <typename Counts>
  static uint64_t PercentileOf(const Counts& histogram, double quantile, uint64_t max) {
    const uint64_t value = Percentile(histogram, quantile);
    return value + 1 < kBuckets ? value : max;
  }

  static constexpr size_t kWindowUpdates = 100;
  static constexpr size_t kClocksKept = 16;

  struct VectorClock {
    Version version{};
    std::vector<Version> bases;
    double mean_staleness = 0;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.version, self.bases, self.mean_staleness);
    }
  };

  struct WorkerLag {
    uint64_t pushes = 0;
    uint64_t last = 0;
    uint64_t sum = 0;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.pushes, self.last, self.sum);
    }
  };

  void RecordGradient(WorkerId worker, uint64_t staleness);

  /// Records, beside its gradients, the push of an aggregator that brought so many of them.
  /// `staleness`: the mean of theirs.
  void RecordComposite(uint32_t gradients, double staleness);

  /// Records an update that made `version` out of gradients with these base versions. A round that
  /// closed without a gradient is not recorded. REQUIRES: bases is not empty, each base < version.
  void RecordUpdate(Version version, std::vector<Version> bases);

  /// Records the mean factor by which staleness compensation multiplied an update's gradients.
  void RecordScale(double scale);

  uint64_t gradients() const { return gradients_; }

  /// The pushes of aggregators, and how many gradients they brought; each counts once in their mean
  /// staleness, which is 0 before the first.
  uint64_t composites() const { return composites_; }
  uint64_t composite_parts() const { return composite_parts_; }
  double composite_mean() const;
  uint64_t max() const { return max_; }
  double mean() const;

  /// Mean of ⟨σ⟩ over the last kWindowUpdates updates; 0 before the first.
  double window_mean() const;

  /// Mean of the scales of the last kWindowUpdates updates; 1 before the first.
  double window_scale() const;

  /// The number of gradients by σ, up to the largest σ seen.
  const std::vector<uint64_t>& histogram() const { return histogram_; }
  const std::map<WorkerId, WorkerLag>& workers() const { return workers_; }

  /// The vector clocks of the last kClocksKept updates, newest last.
  const std::deque<VectorClock>& vector_clocks() const { return vector_clocks_; }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.gradients_, self.composites_, self.composite_parts_, self.composite_sum_,
            self.sum_, self.max_, self.histogram_, self.workers_, self.vector_clocks_, self.window_,
            self.scales_);
  }

 private:
  uint64_t gradients_ = 0;
  uint64_t composites_ = 0;
  uint64_t composite_parts_ = 0;
  double composite_sum_ = 0;
  uint64_t sum_ = 0;
  uint64_t max_ = 0;
  std::vector<uint64_t> histogram_;
  std::map<WorkerId, WorkerLag> workers_;
  std::deque<VectorClock> vector_clocks_;
  std::deque<double> window_;
  std::deque<double> scales_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_LAG_TRACKER_H_
