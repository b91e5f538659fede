#ifndef SLIPSTREAM_WORKER_TRAINING_NONFINITE_STEPS_H_
#define SLIPSTREAM_WORKER_TRAINING_NONFINITE_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/encoding.h"
#include "common/layout/tensor_layout.h"

namespace slipstream {

/// Returns a description of the non-finite part of a step: "a loss of nan", "a gradient with inf at
/// parameter 17". Values that are too large for the codec of pushes or for the servers count as
/// non-finite. Returns nothing for a healthy step, whose gradient may be pushed. `loss`: absent if
/// the caller has none. `begin`: where in the model the gradient begins, if it is a part. `of`:
/// what the values are, if they are no gradient. `layout`: the model's, if its tensors have names
/// that people know.
std::optional<std::string> NonfinitePart(std::optional<float> loss, std::span<const float> gradient,
                                         Encoding push_codec = Encoding::kFp32, size_t begin = 0,
                                         std::string_view of = "a gradient",
                                         const TensorLayout* layout = nullptr);

/// Counts a worker's steps with non-finite values, and fails when there are too many.
///
/// One such step may come from an unusual example and is left out. Several in a row mean that the
/// weights are lost or that the steps are too long.
///
/// Not thread-safe: one owner.
class NonfiniteSteps {
 public:
  struct Count {
    uint64_t total = 0;

    /// The number up to now without a healthy step in between.
    uint32_t in_a_row = 0;

    /// The mini-batch of the last one.
    uint64_t batch = 0;
    std::string what;
  };

  /// REQUIRES: in_a_row_max > 0.
  explicit NonfiniteSteps(uint32_t in_a_row_max);

  void OnHealthy() { count_.in_a_row = 0; }

  /// Counts a non-finite step. Fails with INTERNAL, and a message that says what to do, once
  /// `in_a_row_max` in a row are reached.
  absl::Status OnNonfinite(uint64_t batch, const std::string& what);

  const Count& count() const { return count_; }

 private:
  const uint32_t in_a_row_max_;
  Count count_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_NONFINITE_STEPS_H_
