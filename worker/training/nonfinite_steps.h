#ifndef SLIPSTREAM_WORKER_TRAINING_NONFINITE_STEPS_H_
#define SLIPSTREAM_WORKER_TRAINING_NONFINITE_STEPS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "common/base/encoding.h"

namespace slipstream {

/// What a step gave that is not a finite number: "a loss of nan", "a gradient with inf at parameter
/// 17"; nor are numbers that the codec of pushes has no room for. Nothing of a healthy step, whose
/// gradient may be pushed.
std::optional<std::string> NonfinitePart(float loss, std::span<const float> gradient,
                                         Encoding push_codec = Encoding::kFp32);

/// Counts the steps of a worker that gave no finite numbers, and says when there are too many.
///
/// One such step may come from one odd example and is left out; several in a row say that the
/// weights are lost, or that the steps are too long.
///
/// Not thread-safe: one owner.
class NonfiniteSteps {
 public:
  struct Count {
    uint64_t total = 0;

    /// Up to now, without a healthy one between.
    uint32_t in_a_row = 0;

    /// Of the last one.
    uint64_t batch = 0;
    std::string what;
  };

  /// REQUIRES: in_a_row_max > 0.
  explicit NonfiniteSteps(uint32_t in_a_row_max);

  void OnHealthy() { count_.in_a_row = 0; }

  /// Fails with INTERNAL, and says what to do, if as many in a row are reached.
  absl::Status OnNonfinite(uint64_t batch, const std::string& what);

  const Count& count() const { return count_; }

 private:
  const uint32_t in_a_row_max_;
  Count count_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_NONFINITE_STEPS_H_
