#ifndef SLIPSTREAM_COMMON_SETTINGS_PARAMETERS_H_
#define SLIPSTREAM_COMMON_SETTINGS_PARAMETERS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace slipstream {

/// A number that some rows of an axis take: a key of run.yaml, beside the key that names the row.
/// The parser, schema, template and checks of the file follow from it, and so do plan and status.
struct ParameterRow {
  std::string_view key;
  std::string_view doc;  // A sentence for the author of a run.yaml.

  /// The default if only the row's name is given. A model trains with it.
  double initial = 0;

  /// The bounds; both are allowed.
  double min = 0;
  double max = 0;
  bool is_whole = false;

  /// Set if 0 means that the parameter has no part in the run. It is then not shown.
  bool is_off_at_zero = false;

  /// How cluster.workers bounds the value, in addition.
  enum class Limit : uint8_t { kNone, kWorkers, kBelowWorkers };
  Limit limit = Limit::kNone;

  /// Another parameter of the row, which takes the place of this one unless it is 0.
  std::string_view replaced_by = "";

  /// Returns whether the value is within the bound that follows from the number of workers.
  constexpr bool Fits(double value, double workers) const {
    return limit == Limit::kNone ||
           (limit == Limit::kBelowWorkers ? value < workers : value <= workers);
  }
};

/// The keys that one row takes; unused places are empty.
using ParameterKeys = std::array<std::string_view, 4>;

/// The values of all parameters of one axis, whichever row a run uses. `kRows` is an array of
/// ParameterRow.
template <const auto& kRows>
class ParameterValues {
 public:
  constexpr ParameterValues() { std::ranges::transform(kRows, values_.begin(), InitialOf); }

  /// REQUIRES: one of kRows has this key.
  constexpr double operator[](std::string_view key) const { return values_.at(IndexOf(key)); }
  constexpr double& operator[](std::string_view key) { return values_.at(IndexOf(key)); }

  /// Returns whether the parameter has a part in the run.
  constexpr bool IsOn(std::string_view key) const {
    const ParameterRow& row = kRows.at(IndexOf(key));
    const bool is_replaced = !row.replaced_by.empty() && (*this)[row.replaced_by] != 0;
    return !is_replaced && ((*this)[key] != 0 || !row.is_off_at_zero);
  }

  friend bool operator==(const ParameterValues&, const ParameterValues&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    for (auto& value : self.values_) archive(value);
  }

 private:
  static constexpr double InitialOf(const ParameterRow& row) { return row.initial; }
  static constexpr size_t IndexOf(std::string_view key) {
    return static_cast<size_t>(std::ranges::find(kRows, key, &ParameterRow::key) - kRows.begin());
  }

  std::array<double, kRows.size()> values_ = {};
};

/// Returns whether each row stands at the place that its kind names: keys of run.yaml are read by
/// place.
template <typename Rows>
constexpr bool AreInOrder(const Rows& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<size_t>(rows[i].kind) != i) return false;
  }
  return true;
}

/// Returns the parameters that a row takes and that have a part in the run, as pairs of key and
/// value, in the row's order.
template <typename Row, typename Values>
std::vector<std::pair<std::string_view, double>> ParametersOf(const Row& row,
                                                              const Values& values) {
  std::vector<std::pair<std::string_view, double>> pairs;
  for (const std::string_view key : row.parameters) {
    if (!key.empty() && values.IsOn(key)) pairs.emplace_back(key, values[key]);
  }
  return pairs;
}

/// The largest share: shares are below 1, also in the shards' arithmetic, which is fp32.
inline constexpr double kShareMax = 0.9999999;

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_PARAMETERS_H_
