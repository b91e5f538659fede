#ifndef SLIPSTREAM_TESTS_BENCHMARKS_RAW_PART_H_
#define SLIPSTREAM_TESTS_BENCHMARKS_RAW_PART_H_

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace slipstream::benchmarks {

/// Returns the number of arrays that a rule keeps beside the weights, each of their size: none for
/// sgd, one for momentum, two for Adam.
size_t StateArrays(const std::string& rule);

/// One server's part of the model and its update, for contenders that have nothing else: no
/// versions, checks or identity.
///
/// A pull may see an update half done. Real servers prevent that; the cost of preventing it is not
/// to be measured here.
///
/// Thread-safe: guarded by its own mutex.
class RawPart {
 public:
  /// All arrays are borrowed, are zero at first and must outlive this. The number of state arrays
  /// determines which rule is applied; see StateArrays.
  RawPart(std::span<float> weights, std::vector<std::span<float>> state)
      : weights_(weights), state_(std::move(state)) {}

  /// Updates the weights from `begin` on. A gradient may come in several pieces. Updates of one
  /// piece by two workers are applied one after the other.
  /// REQUIRES: the part has at least `gradient.size()` values from `begin` on.
  void Apply(size_t begin, std::span<const float> gradient);

  std::span<const float> weights() const { return weights_; }

 private:
  // Constant after construction; the mutex guards the values.
  const std::span<float> weights_;
  const std::vector<std::span<float>> state_;

  std::mutex mutex_;
};

}  // namespace slipstream::benchmarks

#endif  // SLIPSTREAM_TESTS_BENCHMARKS_RAW_PART_H_
