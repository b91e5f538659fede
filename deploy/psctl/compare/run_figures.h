#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_FIGURES_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_FIGURES_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace slipstream {

/// A figure by which runs are compared.
struct RunFigure {
  /// The key in `psctl compare -o json`.
  std::string_view key;

  /// The heading of the table's column.
  std::string_view heading;

  /// The place in summary.json, as a JSON pointer.
  const char* place;

  // The table shows the value times `factor`, with this number of decimals, and then `unit`.
  double factor = 1;
  int decimals = 0;
  std::string_view unit = "";
};

inline constexpr std::array kRunFigures = {
    RunFigure{"test_accuracy", "test accuracy", "/test_accuracy", 100, 2, "%"},
    RunFigure{"test_loss", "test loss", "/test_loss", 1, 4},
    RunFigure{"seconds", "seconds", "/seconds", 1, 2},
    RunFigure{"examples_per_second", "examples/s", "/examples_per_second"},
    RunFigure{"staleness_mean", "staleness", "/staleness/mean", 1, 3},
    RunFigure{"staleness_p99", "p99", "/staleness/p99"},
    RunFigure{"updates", "updates", "/updates"},
};

// The places of some of them.
inline constexpr size_t kAccuracyFigure = 0;
inline constexpr size_t kSecondsFigure = 2;
static_assert(kRunFigures[kAccuracyFigure].key == "test_accuracy");
static_assert(kRunFigures[kSecondsFigure].key == "seconds");

/// The values of kRunFigures, in their order. A value is absent if the run has none; for instance,
/// the loss mse gives no accuracy.
using RunFigureValues = std::array<std::optional<double>, kRunFigures.size()>;

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_FIGURES_H_
