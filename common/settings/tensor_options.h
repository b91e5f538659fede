#ifndef SLIPSTREAM_COMMON_SETTINGS_TENSOR_OPTIONS_H_
#define SLIPSTREAM_COMMON_SETTINGS_TENSOR_OPTIONS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/layout/tensor_layout.h"

namespace slipstream {

/// The largest weight decay, which fits an fp32.
inline constexpr double kWeightDecayMax = 1e30;

/// Options of the optimizer for the tensors whose names match a pattern. In a list of such items,
/// the first one that matches a tensor counts for it, as a whole: what that item leaves out follows
/// the optimizer, whatever later items say.
struct TensorOptions {
  /// The most items that a run may have.
  static constexpr size_t kItemsMax = 64;

  /// The largest factor of the learning rate. With it, the largest rate still fits an fp32.
  static constexpr double kLearningRateFactorMax = 1e6;

  /// A pattern as MatchesPattern takes it.
  std::string match;

  /// Replaces OptimizerSpec::weight_decay. In [0, kWeightDecayMax].
  std::optional<double> weight_decay;

  /// Multiplies the learning rate after its schedule. In [0, kLearningRateFactorMax]. 0 freezes the
  /// tensors: not a bit of them changes.
  std::optional<double> learning_rate_factor;

  bool freezes() const { return learning_rate_factor == 0; }

  friend bool operator==(const TensorOptions&, const TensorOptions&) = default;
};

/// Returns whether all of `name` is as `pattern` says: `*` stands for any text, also for none, `?`
/// for any one byte, and every other character for itself.
bool MatchesPattern(std::string_view pattern, std::string_view name);

/// Returns the item that counts for the tensor of that name; nothing if none matches.
std::optional<size_t> FindTensorOptions(const std::vector<TensorOptions>& items,
                                        std::string_view name);

/// Returns the items in which freezing is all that is left. They are for a rule that does not
/// follow the optimizer, but must not move what the optimizer freezes.
std::vector<TensorOptions> WithFreezingAlone(std::vector<TensorOptions> items);

/// A stretch of values that an update treats alike.
struct OptionSpan {
  ParameterRange range;
  double weight_decay = 0;
  double learning_rate_factor = 1;

  friend bool operator==(const OptionSpan&, const OptionSpan&) = default;
};

/// Returns the spans of `range`, one after another from its begin on, which is position 0. They are
/// as long as they can be, so that without items there is one. `weight_decay` is that of the
/// tensors that no item matches.
std::vector<OptionSpan> OptionSpansWithin(const ParameterRange& range, const TensorLayout& layout,
                                          double weight_decay,
                                          const std::vector<TensorOptions>& items);

/// Returns the parts of `range` that the items freeze, in order and without overlap, as positions
/// from its begin on.
std::vector<ParameterRange> FrozenWithin(const ParameterRange& range, const TensorLayout& layout,
                                         const std::vector<TensorOptions>& items);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_TENSOR_OPTIONS_H_
