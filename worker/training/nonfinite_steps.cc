#include "worker/training/nonfinite_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/kernels/finite.h"
#include "common/process/exit_code.h"

namespace slipstream {

std::optional<std::string> NonfinitePart(std::optional<float> loss, std::span<const float> gradient,
                                         Encoding push_codec, size_t begin, std::string_view of,
                                         const TensorLayout* layout) {
  if (loss.has_value() && !std::isfinite(*loss)) return fmt::format("a loss of {}", *loss);
  const float limit = std::min(RowOf(push_codec).overflow_min, kGradientLimit);
  if (AllBelow({std::as_bytes(gradient)}, limit)) return std::nullopt;
  const auto wrong =
      std::ranges::find_if(gradient, [limit](float value) { return !(std::fabs(value) < limit); });
  const bool is_too_much_to_encode = std::fabs(*wrong) >= RowOf(push_codec).overflow_min;
  const std::string beyond =
      !std::isfinite(*wrong) ? ""
      : is_too_much_to_encode
          ? fmt::format(" (too much for wire.push_codec {})", RowOf(push_codec).name)
          : " (servers take magnitudes below 2^50)";
  const size_t place = begin + static_cast<size_t>(wrong - gradient.begin());
  std::string where = fmt::format("at parameter {}", place);
  if (layout != nullptr) {
    const auto after = std::ranges::upper_bound(layout->tensors(), place, {}, &Tensor::offset);
    const Tensor& tensor = *std::prev(after);
    where = fmt::format("in tensor \"{}\", value {}", tensor.name, place - tensor.offset);
  }
  return fmt::format("{} with {}{} {}{}", of, *wrong, beyond, where,
                     loss.has_value() ? fmt::format(", and a loss of {}", *loss) : "");
}

NonfiniteSteps::NonfiniteSteps(uint32_t in_a_row_max) : in_a_row_max_(in_a_row_max) {
  PS_CHECK(in_a_row_max > 0);
}

absl::Status NonfiniteSteps::OnNonfinite(uint64_t batch, const std::string& what) {
  ++count_.total;
  ++count_.in_a_row;
  count_.batch = batch;
  count_.what = what;
  if (count_.in_a_row < in_a_row_max_) return absl::OkStatus();
  return DivergedError(fmt::format(
      "training diverged: {} mini-batch{} in a row gave no finite numbers; the last, mini-batch "
      "{}, "
      "gave {}. Lower optimizer.learning_rate, or let it rise (optimizer.schedule.warmup_epochs); "
      "training.nonfinite_max says how many may be left out",
      count_.in_a_row, count_.in_a_row == 1 ? "" : "es", batch, what));
}

}  // namespace slipstream
