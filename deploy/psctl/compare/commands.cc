#include "deploy/psctl/compare/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files/whole_file.h"
#include "common/json/json_text.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "deploy/psctl/compare/run_groups.h"
#include "deploy/psctl/compare/run_plot.h"
#include "deploy/psctl/compare/run_record.h"
#include "deploy/psctl/compare/view.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/run/directory.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

/// Returns "runs/a" for "runs/a/".
std::string WithoutSlash(std::string directory) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  return directory;
}

/// Returns the groups of all runs. If any directory is wrong, prints all errors to stderr and
/// returns the exit code.
std::variant<std::vector<RunGroup>, ExitCode> ReadGroups(
    const std::vector<std::string>& directories) {
  std::vector<RunRecord> runs;
  std::set<fs::path> seen;
  ExitCode code = ExitCode::kOk;
  for (const std::string& named : directories) {
    const std::string directory = WithoutSlash(named);
    std::error_code error;
    if (!seen.insert(fs::weakly_canonical(directory, error)).second) {
      code = Complain(ExitCode::kUsage, directory + " is named twice; name each run once");
      continue;
    }
    absl::StatusOr<RunRecord> run = ReadRunRecord(directory);
    if (run.ok()) {
      runs.push_back(*std::move(run));
    } else {
      code = Complain(run.status());
    }
  }
  if (code != ExitCode::kOk) return code;
  return GroupRuns(runs);
}

/// Ends the curves of accuracy with what the run came to.
void EndDiverged(const RunRecord& run, RunCurves& curves) {
  const std::optional<double>& accuracy = run.figures[kAccuracyFigure];
  const std::optional<double>& seconds = run.figures[kSecondsFigure];
  if (!accuracy.has_value() || !seconds.has_value()) return;
  const auto end = [&accuracy](double x, Curve& curve) {
    curve.push_back({curve.empty() ? x : std::max(x, curve.back().x), *accuracy});
  };
  end(*seconds, curves.accuracy_by_time);
  end(static_cast<double>(run.divergence->epoch), curves.accuracy_by_epoch);
  curves.ends_diverged = true;
}

absl::StatusOr<PlotGroup> ToPlot(const RunGroup& group) {
  PlotGroup plot = {.label = group.label, .runs = {}, .staleness = {}};
  if (std::ranges::any_of(group.runs, [](const auto& run) { return run.divergence.has_value(); })) {
    plot.note = group.EndedBy();
  }
  for (const RunRecord& run : group.runs) {
    const absl::StatusOr<std::string> metrics = ReadMetrics(run.directory);
    if (!metrics.ok()) return metrics.status();
    absl::StatusOr<RunCurves> curves =
        ParseCurves(*metrics, RunDirectory::Of(run.directory).MetricsPath());
    if (!curves.ok()) return curves.status();
    if (run.divergence.has_value()) EndDiverged(run, *curves);
    plot.runs.push_back(*std::move(curves));
    plot.staleness.resize(std::max(plot.staleness.size(), run.staleness.size()));
    for (size_t sigma = 0; sigma < run.staleness.size(); ++sigma) {
      plot.staleness[sigma] += run.staleness[sigma];
    }
  }
  return plot;
}

}  // namespace

int CompareCommand(const CompareArguments& arguments) {
  const auto read = ReadGroups(arguments.directories);
  if (const auto* code = std::get_if<ExitCode>(&read)) return static_cast<int>(*code);
  const auto& groups = std::get<std::vector<RunGroup>>(read);
  const bool as_json = arguments.format == OutputFormat::kJson;
  WriteToStdout(as_json ? JsonText(ComparisonJson(groups)) : ComparisonTable(groups));
  return static_cast<int>(ExitCode::kOk);
}

int PlotCommand(const PlotArguments& arguments) {
  const auto read = ReadGroups(arguments.directories);
  if (const auto* code = std::get_if<ExitCode>(&read)) return static_cast<int>(*code);
  std::vector<PlotGroup> plots;
  for (const RunGroup& group : std::get<std::vector<RunGroup>>(read)) {
    absl::StatusOr<PlotGroup> plot = ToPlot(group);
    if (!plot.ok()) return EndWith(plot.status());
    plots.push_back(*std::move(plot));
  }
  const std::string output = arguments.output.empty()
                                 ? WithoutSlash(arguments.directories.front()) + ".svg"
                                 : arguments.output;
  const absl::Status written = WriteWholeFile(output, PlotRuns(plots));
  if (!written.ok()) return EndWith(written);
  WriteToStdout(output + "\n");
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace slipstream
