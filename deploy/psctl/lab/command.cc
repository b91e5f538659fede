#include "deploy/psctl/lab/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/duration_text.h"
#include "common/config/field_table.h"
#include "common/json/json_number.h"
#include "common/json/json_text.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "common/process/stop_signal.h"
#include "common/settings/shards.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/config/loading.h"
#include "deploy/psctl/lab/cell_program.h"
#include "deploy/psctl/lab/cell_result.h"
#include "deploy/psctl/lab/cells.h"
#include "deploy/psctl/lab/cost_model.h"
#include "deploy/psctl/lab/grid_file.h"
#include "deploy/psctl/lab/lab_directory.h"
#include "deploy/psctl/lab/lab_report.h"
#include "deploy/psctl/lab/lab_run.h"
#include "deploy/psctl/lab/reference.h"
#include "deploy/psctl/run/child_process.h"
#include "deploy/psctl/run/program_locations.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// A grid and what it is made of. Without a program, only results of other builds are of use.
struct Laboratory {
  CellProgram program;
  Grid grid;
  GridCells cells;
  std::optional<std::vector<ReferenceRow>> reference;
  std::vector<std::vector<int>> core_groups;
};

/// Reads the grid, or prints all errors.
std::variant<Laboratory, ExitCode> Open(const LabArguments& arguments) {
  const std::string& path = arguments.grid;
  std::error_code error;
  const ExitCode refused = fs::exists(path, error) ? ExitCode::kConfiguration : ExitCode::kIo;
  const auto complain = [refused](const std::vector<Diagnostic>& errors) {
    PrintDiagnostics(errors);
    return refused;
  };
  Laboratory lab;
  auto grid = LoadGrid(path, arguments.overrides);
  if (const auto* errors = std::get_if<std::vector<Diagnostic>>(&grid)) return complain(*errors);
  lab.grid = std::get<Grid>(std::move(grid));
  auto cells = ExpandGrid(lab.grid);
  if (const auto* errors = std::get_if<std::vector<Diagnostic>>(&cells)) return complain(*errors);
  lab.cells = std::get<GridCells>(std::move(cells));
  if (lab.grid.reference) {
    auto rows = LoadReference(*lab.grid.reference);
    if (const auto* errors = std::get_if<std::vector<Diagnostic>>(&rows)) return complain(*errors);
    lab.reference = std::get<std::vector<ReferenceRow>>(std::move(rows));
  }
  auto groups = CoreGroups(lab.grid, AvailableCores());
  if (!groups.ok()) return Complain(groups.status());
  lab.core_groups = *std::move(groups);
  auto program = FindCellProgram(lab.grid.engine, arguments.bin_dir);
  const bool needs_program = arguments.action == LabArguments::Action::kRun;
  if (program.ok()) {
    lab.program = *std::move(program);
  } else if (needs_program || !arguments.takes_any_build) {
    return Complain(program.status());
  }
  return lab;
}

LabDirectory DirectoryOf(const LabArguments& arguments, const Laboratory& lab) {
  const std::string& path = arguments.directory;
  return {path.empty() ? "runs/lab-" + lab.grid.name : path, lab.program.build,
          arguments.takes_any_build};
}

std::vector<CellResult> ReadResults(const Laboratory& lab, const LabDirectory& directory) {
  // Without the lock nobody runs cells, and an unfinished one was cut off.
  const bool is_running = directory.IsLocked();
  std::vector<CellResult> results;
  for (const Cell& cell : lab.cells.cells) {
    CellResult result = ReadResult(directory, cell, lab.grid.engine);
    if (result.state == CellState::kRunning && !is_running) {
      result = {.cell = &cell, .state = CellState::kPending};
    }
    results.push_back(std::move(result));
  }
  return results;
}

CostModel LearnedCosts(const Laboratory& lab, const LabDirectory& directory) {
  CostModel costs(lab.grid.engine);
  for (const Cell& cell : lab.cells.cells) {
    if (const std::optional<CellCost> cost = directory.CostOf(cell.id)) costs.Learn(cell, *cost);
  }
  return costs;
}

/// Returns how many cells are in a state.
size_t CountOf(const std::vector<CellResult>& results, CellState state) {
  return static_cast<size_t>(std::ranges::count(results, state, &CellResult::state));
}

/// Writes the reports, and prints the verdict. Returns the code that the results stand for.
ExitCode Report(const Laboratory& lab, const LabDirectory& directory) {
  std::vector<CellResult> results = ReadResults(lab, directory);
  const size_t failed = CountOf(results, CellState::kFailed);
  if (failed == 0 && CountOf(results, CellState::kDone) == 0) {
    return Complain(absl::NotFoundError(
        fmt::format("no cell of {} has a result in {}, so that there is nothing to report; psctl "
                    "lab run makes results{}",
                    lab.grid.path, directory.path(), directory.UnusedText(lab.cells.cells))));
  }
  for (CellResult& result : results) {
    if (result.state == CellState::kRunning) result.curves = {};  // Means are of whole cells.
  }
  LabReport report = {.grid = &lab.grid,
                      .cells = &lab.cells,
                      .results = &results,
                      .points = PointsOf(results),
                      .reference = {},
                      .directory = directory.path()};
  if (lab.reference) {
    report.reference = CompareWith(*lab.reference, *lab.grid.reference, report.points);
  }
  if (absl::Status written = WriteReports(report); !written.ok()) return Complain(written);
  WriteToStdout(fmt::format("{0}/report.html\n{0}/report.md\n{0}/results.csv\n", directory.path()));
  if (report.reference) WriteToStdout(VerdictText(*report.reference) + "\n");
  if (failed > 0) {
    return Complain(ExitCode::kRunFailed,
                    fmt::format("{} failed; psctl lab run --only failed runs them again",
                                CountText(failed, "cell")));
  }
  const auto diverged = std::ranges::count_if(
      results, [](const CellResult& result) { return result.diverged_in_epoch.has_value(); });
  if (diverged > 0 && lab.grid.fails_on_divergence) {
    return Complain(ExitCode::kDiverged,
                    fmt::format("{} diverged (on_divergence: fail)",
                                CountText(static_cast<size_t>(diverged), "cell")));
  }
  const bool is_whole = CountOf(results, CellState::kDone) == results.size();
  const bool is_other = report.reference && report.reference->not_reproduced() > 0;
  return is_whole && is_other ? ExitCode::kNotReproduced : ExitCode::kOk;
}

/// Refuses cells that are left if the budget has too little memory for one, even alone.
absl::Status CheckMemory(const Laboratory& lab, const LabDirectory& directory,
                         const CostModel& costs) {
  if (!lab.grid.budget.memory) return absl::OkStatus();
  const auto threads = static_cast<uint32_t>(lab.core_groups.front().size());
  for (const Cell& cell : lab.cells.cells) {
    if (directory.StateOf(cell.id) == CellState::kDone) continue;
    const uint64_t bytes = costs.Estimate(cell, threads).bytes;
    if (bytes <= *lab.grid.budget.memory) continue;
    const Diagnostic error = {
        .source = lab.grid.budget.memory_source,
        .message = fmt::format("the cell {} takes about {}, more than budget.memory, {}",
                               CellLabel(lab.cells.axes, cell.values), BytesText(bytes),
                               BytesText(*lab.grid.budget.memory))};
    return absl::InvalidArgumentError(error.ToString());
  }
  return absl::OkStatus();
}

/// Refuses to begin if the data of a cell that is left are not there.
absl::Status CheckData(const Laboratory& lab, const LabDirectory& directory) {
  std::map<std::string, size_t> missing;
  for (const Cell& cell : lab.cells.cells) {
    const std::string& path = cell.settings.data.path;
    std::error_code error;
    if (directory.StateOf(cell.id) == CellState::kDone ||
        !FindField("data.path")->Applies(cell.settings)) {
      continue;
    }
    if (!fs::exists(path, error) || fs::is_empty(path, error)) ++missing[path];
  }
  if (missing.empty()) return absl::OkStatus();
  const auto& [path, cells] = *missing.begin();
  std::error_code error;
  return absl::NotFoundError(
      fmt::format("there are no data in {}, which is data.path of {}; get them, or name another "
                  "directory with --set data.path=DIR",
                  fs::absolute(path, error).string(), CountText(cells, "cell")));
}

std::string MinutesText(double seconds) { return fmt::format("{:.1f}", seconds / 60); }

/// Prints what each cell that has no result is going to cost.
void PrintCosts(const Laboratory& lab, const LabDirectory& directory, const CostModel& costs) {
  std::vector<TableRow> rows;
  double left = 0;
  bool is_learned = false;
  const auto threads = static_cast<uint32_t>(lab.core_groups.front().size());
  for (const Cell& cell : lab.cells.cells) {
    const CellResult result = ReadResult(directory, cell, lab.grid.engine);
    CostEstimate estimate = costs.Estimate(cell, threads);
    if (result.cost) {
      estimate.core_seconds = result.cost->cpu_seconds;
      estimate.bytes = result.cost->peak_bytes;
    } else {
      left += estimate.core_seconds;
      is_learned = is_learned || estimate.is_learned;
    }
    rows.push_back({cell.id, CellLabel(lab.cells.axes, cell.values), std::to_string(cell.seed()),
                    std::string(StatusName(result)), MinutesText(estimate.core_seconds),
                    BytesText(estimate.bytes)});
  }
  WriteToStdout(FormatTable({"cell", "values", "seed", "status", "core minutes", "memory"}, rows));
  const size_t cores = lab.core_groups.size() * threads;
  WriteToStdout(fmt::format(
      "{} ({} left out, {} mean the same as others); {} core minutes to go, about {} on "
      "{}; estimated from {}{}\n",
      CountText(rows.size(), "cell"), lab.cells.left_out, lab.cells.merged, MinutesText(left),
      DurationText(left / static_cast<double>(cores)), CountText(cores, "core"),
      is_learned ? "the cells that are done" : "the multiplications of the nets",
      directory.UnusedText(lab.cells.cells)));
}

int RunGrid(const LabArguments& arguments, const Laboratory& lab) {
  const LabDirectory directory = DirectoryOf(arguments, lab);
  CostModel costs = LearnedCosts(lab, directory);
  if (arguments.is_dry) {
    PrintCosts(lab, directory, costs);
    return static_cast<int>(ExitCode::kOk);
  }
  if (arguments.only_failed && CountOf(ReadResults(lab, directory), CellState::kFailed) == 0) {
    WriteToStderr(
        fmt::format("psctl: no cell has failed in {}; nothing to run\n", directory.path()));
    return static_cast<int>(ExitCode::kOk);
  }
  if (absl::Status fits = CheckMemory(lab, directory, costs); !fits.ok()) {
    WriteToStderr(std::string(fits.message()) + "\n");
    return static_cast<int>(ExitCode::kConfiguration);
  }
  if (absl::Status there = CheckData(lab, directory); !there.ok()) return EndWith(there);
  std::signal(SIGPIPE, SIG_IGN);
  const absl::StatusOr<FileDescriptor> lock = directory.Lock();
  if (!lock.ok()) return EndWith(lock.status());
  const StopSignal stop;
  const absl::Status ran = LabRun(lab.grid, lab.cells, directory, stop, costs,
                                  {.program = lab.program,
                                   .bin_dir = arguments.bin_dir,
                                   .core_groups = lab.core_groups,
                                   .environment = ChildEnvironment(environ),
                                   .only_failed = arguments.only_failed})
                               .Run();
  if (!ran.ok()) return EndWith(ran);
  const ExitCode code = Report(lab, directory);
  return stop.stopped() ? stop.ExitStatus() : static_cast<int>(code);
}

int ShowStatus(const LabArguments& arguments, const Laboratory& lab) {
  const LabDirectory directory = DirectoryOf(arguments, lab);
  const bool is_running = directory.IsLocked();
  std::vector<TableRow> rows;
  Json cells = Json::array();
  for (const CellResult& result : ReadResults(lab, directory)) {
    const std::string label = CellLabel(lab.cells.axes, result.cell->values);
    rows.push_back({result.cell->id, label, std::to_string(result.cell->seed()),
                    std::string(StatusName(result)), OutcomeText(result)});
    cells.push_back({{"cell", result.cell->id},
                     {"values", label},
                     {"seed", result.cell->seed()},
                     {"status", StatusName(result)},
                     {"error", result.error ? NumberOrNull(*result.error) : Json(nullptr)}});
  }
  if (arguments.format == OutputFormat::kJson) {
    WriteToStdout(JsonText(Json{
        {"directory", directory.path()}, {"running", is_running}, {"cells", std::move(cells)}}));
    return static_cast<int>(ExitCode::kOk);
  }
  WriteToStdout(FormatTable({"cell", "values", "seed", "status", "result"}, rows));
  WriteToStdout(fmt::format("{}; {}{}\n", directory.path(),
                            is_running ? "psctl lab run works there" : "nobody runs cells there",
                            directory.UnusedText(lab.cells.cells)));
  return static_cast<int>(ExitCode::kOk);
}

int ReplayRun(const LabArguments& arguments) {
  const absl::StatusOr<std::string> program = FindLab(arguments.bin_dir);
  if (!program.ok()) return EndWith(program.status());
  std::vector<std::string> words = {"replay", arguments.grid, "--threads",
                                    std::to_string(arguments.threads)};
  for (const std::string& override : arguments.overrides) {
    words.insert(words.end(), {"--set", override});
  }
  return Become(*program, words);
}

}  // namespace

int LabCommand(const LabArguments& arguments) {
  if (arguments.action == LabArguments::Action::kReplay) return ReplayRun(arguments);
  const auto opened = Open(arguments);
  if (const auto* code = std::get_if<ExitCode>(&opened)) return static_cast<int>(*code);
  const auto& lab = std::get<Laboratory>(opened);
  switch (arguments.action) {
    case LabArguments::Action::kRun:
      return RunGrid(arguments, lab);
    case LabArguments::Action::kStatus:
      return ShowStatus(arguments, lab);
    case LabArguments::Action::kReport:
    case LabArguments::Action::kReplay:
      break;
  }
  return static_cast<int>(Report(lab, DirectoryOf(arguments, lab)));
}

}  // namespace slipstream
