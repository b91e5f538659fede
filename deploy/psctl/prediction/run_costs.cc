#include "deploy/psctl/prediction/run_costs.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace slipstream {
namespace {

constexpr std::pair<std::string_view, double> kRateUnits[] = {
    {"Tbit", 1e12 / 8}, {"Gbit", 1e9 / 8}, {"Mbit", 1e6 / 8}, {"kbit", 1e3 / 8},
    {"GiB", 0x1p30},    {"MiB", 0x1p20},   {"KiB", 0x1p10},   {"GB", 1e9},
    {"MB", 1e6},        {"kB", 1e3},       {"B", 1},
};

std::optional<double> Number(std::string_view text) {
  double value = 0;
  if (!absl::SimpleAtod(absl::string_view(text.data(), text.size()), &value) ||
      !std::isfinite(value) || value < 0)
    return std::nullopt;
  return value;
}

std::optional<double> ParseRate(std::string_view text) {
  if (text.ends_with("/s")) text.remove_suffix(2);
  for (const auto& [unit, bytes] : kRateUnits) {
    if (!text.ends_with(unit)) continue;
    const std::optional<double> value = Number(text.substr(0, text.size() - unit.size()));
    if (!value || *value == 0) return std::nullopt;
    return *value * bytes;
  }
  return std::nullopt;
}

std::string Scaled(double value, std::initializer_list<std::pair<double, const char*>> units) {
  for (const auto& [size, name] : units) {
    if (value >= 0.9995 * size) return fmt::format("{:.3g} {}", value / size, name);
  }
  return value == 0 ? "0"
                    : fmt::format("{:.3g} {}", value / std::rbegin(units)->first,
                                  std::rbegin(units)->second);
}

}  // namespace

std::optional<double> ParseCost(CostUnit unit, const std::string& text) {
  if (unit == CostUnit::kPlain) return Number(text);
  if (unit == CostUnit::kBytesPerSecond) return ParseRate(text);
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration < absl::ZeroDuration() ||
      duration == absl::InfiniteDuration()) {
    return std::nullopt;
  }
  return absl::ToDoubleSeconds(duration);
}

std::string CostText(CostUnit unit, double value) {
  if (std::isinf(value)) return "no limit";
  if (unit == CostUnit::kPlain) return fmt::format("{:.3g}", value);
  if (unit == CostUnit::kSeconds) {
    return Scaled(value, {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}});
  }
  return Scaled(value, {{1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}});
}

void AddMissing(KnownCosts& known, const KnownCosts& more) {
  for (size_t i = 0; i < known.size(); ++i) {
    if (!known[i]) known[i] = more[i];
  }
}

RunCosts CostsOf(const KnownCosts& known) {
  RunCosts costs;
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i]) kCostFigures[i].of(costs) = known[i]->value;
  }
  if (!known[PlaceOfCost("ring_latency")]) costs.ring.latency = costs.link.latency;
  if (!known[PlaceOfCost("ring_bandwidth")]) {
    costs.ring.bytes_per_second = costs.link.bytes_per_second;
  }
  costs.ring.message = costs.link.message;
  return costs;
}

}  // namespace slipstream
