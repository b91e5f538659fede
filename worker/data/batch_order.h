#ifndef SLIPSTREAM_WORKER_DATA_BATCH_ORDER_H_
#define SLIPSTREAM_WORKER_DATA_BATCH_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace slipstream {

/// Maps the run-long sequence of mini-batches to example indices. The order of epoch e is a
/// permutation of all examples, seeded by (seed, e). Its mini-batches are consecutive pieces of μ
/// examples; the last is shorter where μ does not divide the number of examples. Every worker
/// computes the same sequence.
///
/// Not thread-safe: one owner (it caches the permutation of the epoch asked for last).
class BatchOrder {
 public:
  /// REQUIRES: examples > 0, batch_size > 0.
  BatchOrder(size_t examples, uint32_t batch_size, uint64_t seed);

  uint64_t batches_per_epoch() const { return batches_per_epoch_; }

  /// Returns the examples of mini-batch `index` of the run; valid until the next call.
  std::span<const uint32_t> Examples(uint64_t index);

 private:
  void Permute(uint64_t epoch);

  const size_t examples_;
  const uint32_t batch_size_;
  const uint64_t seed_;
  const uint64_t batches_per_epoch_;

  std::vector<uint32_t> permutation_;
  uint64_t permuted_epoch_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_BATCH_ORDER_H_
