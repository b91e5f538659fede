#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_LAB_REPORT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_LAB_REPORT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "deploy/psctl/lab/cell_result.h"
#include "deploy/psctl/lab/cells.h"
#include "deploy/psctl/lab/grid_file.h"
#include "deploy/psctl/lab/reference.h"

namespace slipstream {

/// All that reports of a grid are made from.
struct LabReport {
  const Grid* grid = nullptr;
  const GridCells* cells = nullptr;
  const std::vector<CellResult>* results = nullptr;
  std::vector<PointResult> points;
  std::optional<ReferenceView> reference;

  /// The lab directory.
  std::string directory;

  bool is_virtual() const { return grid->engine == GridEngine::kVirtual; }

  /// Returns the unit of all times: "virtual seconds", or "seconds".
  std::string_view time_unit() const { return is_virtual() ? "virtual seconds" : "seconds"; }
};

/// Return the tables, as CSV with a line of names: one row for each cell, each measurement of a
/// cell, and each staleness of a cell. Errors and shares are in [0, 1].
std::string ResultsCsv(const LabReport& report);
std::string CurvesCsv(const LabReport& report);
std::string SigmaCsv(const LabReport& report);

/// Returns the rows of ResultsCsv, each as a JSON object in a line.
std::string ResultsJsonLines(const LabReport& report);

/// Returns the report as Markdown, without plots.
std::string ReportMarkdown(const LabReport& report);

/// Writes results.csv, results.jsonl, curves.csv, sigma.csv, report.md and report.html into the lab
/// directory.
absl::Status WriteReports(const LabReport& report);

/// Returns a mean with its interval, "18.09 ± 0.31", multiplied by `factor`; "–" if it is absent.
std::string MeanText(const std::optional<MeanInterval>& mean, double factor, int decimals);

/// A table of the report: a heading, and rows of the same length.
struct ReportTable {
  std::vector<std::string> heading;
  std::vector<std::vector<std::string>> rows;
};

/// Returns the points with their means over seeds, and the reference beside ours.
ReportTable PointTable(const LabReport& report);
ReportTable ReferenceTable(const LabReport& report);

/// Returns the mean error of each group of points with about the same μλ. Empty if there is only
/// one group.
ReportTable MuLambdaTable(const LabReport& report);

/// Returns facts about the grid in sentences: how many cells there are, how they ended, and which
/// of them mean the same.
std::vector<std::string> ReportFacts(const LabReport& report);

/// Returns μλ, the examples whose gradients all workers compute at a time.
uint64_t MuLambda(const RunSpec& spec);

/// Returns the power of two next to μλ: points of one group have about the same.
uint64_t MuLambdaGroup(const RunSpec& spec);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_LAB_REPORT_H_
