#ifndef SLIPSTREAM_TESTS_SIMULATION_PLANTED_BUG_H_
#define SLIPSTREAM_TESTS_SIMULATION_PLANTED_BUG_H_

#include <array>
#include <optional>
#include <string_view>

namespace slipstream {

/// Errors that the simulator has to find, or its silence would mean nothing. Each is a mistake that
/// a parameter server was or could be built with.
enum class PlantedBug {
  kNone,

  /// A repeated push counts again.
  kDuplicateCheckOff,

  /// A synchronous round closes when as many pushes have come as there are members.
  kRoundsClosedByCount,

  /// The base version is taken when the push is applied, not when its weights were read.
  kBaseFixedLate,

  /// A push is answered before its version is published.
  kAnswersEarly,

  /// A caller that is gone keeps its place among those that wait.
  kForgetsCancellation,
};

struct PlantedBugName {
  PlantedBug bug;
  std::string_view name;
};

inline constexpr std::array<PlantedBugName, 5> kPlantedBugs = {{
    {PlantedBug::kDuplicateCheckOff, "duplicate_check_off"},
    {PlantedBug::kRoundsClosedByCount, "rounds_closed_by_count"},
    {PlantedBug::kBaseFixedLate, "base_fixed_late"},
    {PlantedBug::kAnswersEarly, "answers_early"},
    {PlantedBug::kForgetsCancellation, "forgets_cancellation"},
}};

inline std::optional<PlantedBug> FindPlantedBug(std::string_view name) {
  for (const PlantedBugName& known : kPlantedBugs) {
    if (known.name == name) return known.bug;
  }
  return std::nullopt;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_PLANTED_BUG_H_
