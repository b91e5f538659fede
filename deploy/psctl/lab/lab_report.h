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

/// Writes the tables results.csv, results.jsonl, curves.csv and sigma.csv, with a row for each
/// cell, measurement, and staleness, and report.md and report.html into the lab directory. In
/// tables errors and shares are in [0, 1].
absl::Status WriteReports(const LabReport& report);

/// Returns a mean with its interval, "18.09 ± 0.31", multiplied by `factor`; "–" if it is absent.
std::string MeanText(const std::optional<MeanInterval>& mean, double factor, int decimals);

/// A table of the report: a heading, and rows of the same length.
struct ReportTable {
  std::vector<std::string> heading;
  std::vector<std::vector<std::string>> rows;
};

/// A part of the report. Any of its members may be empty.
struct ReportSection {
  std::string heading = {};
  std::vector<std::string> facts = {};  // A list.
  std::string text = {};
  ReportTable table = {};
  std::string settings = {};  // The lines of a run.yaml.
};

/// Returns the sections of the report, except plots. The first one has no heading.
std::vector<ReportSection> ReportSections(const LabReport& report);

/// Returns μλ, the examples whose gradients all workers compute at a time.
uint64_t MuLambda(const RunSpec& spec);

/// Returns the power of two next to μλ: points of one group have about the same.
uint64_t MuLambdaGroup(const RunSpec& spec);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_LAB_REPORT_H_
