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

/// The destination of a mini-batch: [count, …] of each field that a Dataset has per example.
struct GatheredExamples {
  std::span<float> examples;
  std::span<uint32_t> labels;  // Empty if there are targets.
  std::span<float> targets;    // Empty if there are labels.
};

/// Returns the number of threads that gather `bytes` fastest: one per 256 KiB, which takes about as
/// long to copy as a thread takes to wake up; at most half the number of processors; and at most
/// eight, which keep up with PCIe. (If there are several plans or workers, each uses as many; they
/// take turns.)
size_t GatherThreads(size_t bytes);

/// Copies examples of a data set side by side, with threads that it keeps: starting a thread would
/// take as long as its share of the work.
///
/// Not thread-safe: one owner.
class ExampleGatherer {
 public:
  ExampleGatherer() = default;
  ~ExampleGatherer();
  ExampleGatherer(const ExampleGatherer&) = delete;
  ExampleGatherer& operator=(const ExampleGatherer&) = delete;

  /// Copies the examples at `indices`, in their order, with `threads` threads including the
  /// caller's, or with fewer if no more can be started. REQUIRES: `to` has room for exactly these
  /// examples; threads ≥ 1.
  void Gather(const Dataset& from, std::span<const uint32_t> indices, const GatheredExamples& to,
              size_t threads);

 private:
  /// Starts threads until there are `threads` beside the caller's, if they can be had.
  void Begin(size_t threads);
  void Run(size_t index);

  std::vector<std::thread> threads_;  // Used by the owner only.

  Mutex mutex_;
  CondVar changed_;
  // Called with i, it does thread i's part.
  std::function<void(size_t)> work_ ABSL_GUARDED_BY(mutex_);
  uint64_t number_ ABSL_GUARDED_BY(mutex_) = 0;  // The number of the current work.
  size_t parts_ ABSL_GUARDED_BY(mutex_) = 0;     // Parts of the threads, without the caller's.
  size_t parts_left_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_GATHER_EXAMPLES_H_
