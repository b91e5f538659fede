#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_RUN_FIGURES_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_RUN_FIGURES_H_

#include <array>
#include <optional>
#include <string_view>

namespace slipstream {

/// A figure by which runs are compared.
struct RunFigure {
  /// In `psctl compare -o json`.
  std::string_view key;

  /// Over the column of the table.
  std::string_view heading;

  /// In summary.json, as a JSON pointer.
  const char* place;

  // In the table: the value is multiplied by `factor` and printed with `decimals` and `unit`.
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

/// The values of kRunFigures in their order; absent where a run has none, as there is no accuracy
/// with the loss mse.
using RunFigureValues = std::array<std::optional<double>, kRunFigures.size()>;

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_RUN_FIGURES_H_
