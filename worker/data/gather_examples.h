#ifndef SLIPSTREAM_WORKER_DATA_GATHER_EXAMPLES_H_
#define SLIPSTREAM_WORKER_DATA_GATHER_EXAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "worker/data/dataset.h"

namespace slipstream {

/// Where a mini-batch comes to lie: [count, …] of what a Dataset has of each example.
struct GatheredExamples {
  std::span<float> examples;
  std::span<uint32_t> labels;  // Empty if there are targets.
  std::span<float> targets;    // Empty if there are labels.
};

/// As many threads as gather so many bytes fastest: one for each 256 KiB, which take about as long
/// to copy as a thread takes to wake, at most half as many as there are processors, and at most
/// eight, which keep up with PCIe. (Several plans, or workers, have as many each: they take turns.)
size_t GatherThreads(size_t bytes);

/// Copies examples of a data set side by side, with threads that stay: to begin one takes as long
/// as it then has something to do.
///
/// Not thread-safe: one owner.
class ExampleGatherer {
 public:
  ExampleGatherer() = default;
  ~ExampleGatherer();
  ExampleGatherer(const ExampleGatherer&) = delete;
  ExampleGatherer& operator=(const ExampleGatherer&) = delete;

  /// Copies the examples at `indices`, in their order, with so many threads, of which the calling
  /// one is the first; with fewer where no more can be had. REQUIRES: `to` holds as many;
  /// threads ≥ 1.
  void Gather(const Dataset& from, std::span<const uint32_t> indices, const GatheredExamples& to,
              size_t threads);

 private:
  /// As many threads beside the caller's, if there are to be had.
  void Begin(size_t threads);
  void Run(size_t index);

  std::vector<std::thread> threads_;  // Of the owner.

  Mutex mutex_;
  CondVar changed_;
  std::function<void(size_t)> work_ ABSL_GUARDED_BY(mutex_);  // Of part i, thread i's.
  uint64_t number_ ABSL_GUARDED_BY(mutex_) = 0;               // Of the work.
  size_t parts_ ABSL_GUARDED_BY(mutex_) = 0;                  // That the threads are to do.
  size_t parts_left_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_GATHER_EXAMPLES_H_
