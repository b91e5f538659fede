#include "deploy/psctl/lab/lab_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/duration_text.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "deploy/psctl/lab/cell_result.h"
#include "deploy/psctl/run/directory.h"

namespace slipstream {
namespace {

constexpr size_t kLogLinesMax = 3;

void Tell(const std::string& line) { WriteToStderr("psctl: " + line + "\n"); }

std::string HowText(const ChildProcess::End& end) {
  return end.signal != 0 ? fmt::format("was killed by signal {}", end.signal)
                         : fmt::format("ended with {}", end.exit_code);
}

}  // namespace

std::vector<int> AvailableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

absl::StatusOr<std::vector<std::vector<int>>> CoreGroups(const Grid& grid,
                                                         const std::vector<int>& available) {
  const auto there = static_cast<uint32_t>(available.size());
  const uint32_t cores = grid.budget.cores.value_or(there);
  const uint32_t usual = grid.engine == GridEngine::kVirtual ? 1 : cores;
  const uint32_t per_cell = grid.budget.cores_per_cell.value_or(usual);
  if (cores > there) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: budget.cores is {}, and this process may use {}", grid.path, cores, there));
  }
  if (per_cell > cores) {
    return absl::InvalidArgumentError(
        fmt::format("{}: budget.cores_per_cell is {}, which is more than the {} in all", grid.path,
                    per_cell, CountText(cores, "core")));
  }
  std::vector<std::vector<int>> groups;
  for (uint32_t begin = 0; begin + per_cell <= cores; begin += per_cell) {
    groups.emplace_back(available.begin() + begin, available.begin() + begin + per_cell);
  }
  return groups;
}

LabRun::LabRun(const Grid& grid, const GridCells& cells, const LabDirectory& directory,
               const StopSignal& stop, CostModel& costs, Options options)
    : grid_(grid),
      directory_(directory),
      stop_(stop),
      costs_(costs),
      options_(std::move(options)),
      cells_(cells.cells),
      axes_(cells.axes) {
  for (const Cell& cell : cells.cells) {
    directory_.GiveUp(cell.id);  // Whoever was running it has ended, since we have the lock.
    const CellState state = directory_.StateOf(cell.id);
    if (state == CellState::kDone) ++done_;
    const bool is_left =
        state == CellState::kFailed || (state == CellState::kPending && !options_.only_failed);
    if (is_left) waiting_.push_back(&cell);
  }
  // All cells of the first seed come first, so that the grid is seen as a whole early.
  std::ranges::stable_sort(waiting_, {}, &Cell::repetition);
  total_ = done_ + waiting_.size();
  for (size_t group = options_.core_groups.size(); group > 0; --group) {
    free_groups_.push_back(group - 1);
  }
}

absl::Status LabRun::Run() {
  Tell(fmt::format("{}: {} done before, {} to run, at most {} at a time; results in {}{}",
                   CountText(total_, "cell"), done_, waiting_.size(), options_.core_groups.size(),
                   directory_.path(), directory_.UnusedText(cells_)));
  absl::Status status;
  while (status.ok() && !stop_.stopped()) {
    status = StartMore();
    if (running_.empty()) break;
    if (status.ok()) Wait();
    status.Update(Collect());
  }
  for (const Running& running : running_) {
    Tell(fmt::format("ends the cell under way: {}", CellLabel(axes_, running.cell->values)));
  }
  std::vector<const Cell*> ended;
  for (const Running& running : running_) ended.push_back(running.cell);
  running_.clear();  // Kills the processes.
  for (const Cell* cell : ended) directory_.GiveUp(cell->id);
  return status;
}

CostEstimate LabRun::EstimateOf(const Cell& cell) const {
  return costs_.Estimate(cell, static_cast<uint32_t>(options_.core_groups.front().size()));
}

bool LabRun::Fits(const CostEstimate& estimate) const {
  if (!grid_.budget.memory || running_.empty()) return true;
  uint64_t bytes = estimate.bytes;
  for (const Running& running : running_) bytes += running.estimate.bytes;
  return bytes <= *grid_.budget.memory;
}

absl::Status LabRun::StartMore() {
  while (!free_groups_.empty() && !waiting_.empty()) {
    const Cell& cell = *waiting_.front();
    const CostEstimate estimate = EstimateOf(cell);
    if (!Fits(estimate)) return absl::OkStatus();
    const size_t group = free_groups_.back();
    if (absl::Status started = Start(cell, group, estimate); !started.ok()) return started;
    waiting_.erase(waiting_.begin());
    free_groups_.pop_back();
  }
  return absl::OkStatus();
}

std::vector<std::string> LabRun::CommandFor(const Cell& cell, size_t core_group) const {
  std::vector<std::string> command = {options_.program.path, "run",
                                      directory_.SettingsPath(cell.id), "--run-dir",
                                      directory_.UnfinishedPath(cell.id)};
  if (grid_.engine == GridEngine::kVirtual) {
    const size_t threads = options_.core_groups[core_group].size();
    command.insert(command.end(), {"--world", directory_.WorldPath(cell.id), "--threads",
                                   std::to_string(threads)});
  } else if (!options_.bin_dir.empty()) {
    command.insert(command.end(), {"--bin-dir", options_.bin_dir});
  }
  return command;
}

absl::Status LabRun::Start(const Cell& cell, size_t core_group, const CostEstimate& estimate) {
  if (absl::Status same = CheckUnchanged(options_.program); !same.ok()) return same;
  if (absl::Status begun = directory_.Begin(cell); !begun.ok()) return begun;
  const std::string log = directory_.UnfinishedPath(cell.id) + "/lab.log";
  std::vector<std::string> environment = options_.environment;
  std::ranges::copy(options_.program.environment, std::back_inserter(environment));
  auto process = ChildProcess::Start({.command = CommandFor(cell, core_group),
                                      .environment = std::move(environment),
                                      .stdout_path = log,
                                      .stderr_path = log,
                                      .cores = options_.core_groups[core_group]});
  if (!process.ok()) {
    directory_.GiveUp(cell.id);
    return process.status();
  }
  running_.push_back({&cell, core_group, estimate, absl::Now(), *std::move(process)});
  return absl::OkStatus();
}

void LabRun::Wait() {
  std::vector<pollfd> events = {{.fd = stop_.fd(), .events = POLLIN, .revents = 0}};
  for (const Running& running : running_) {
    events.push_back({.fd = running.process.fd(), .events = POLLIN, .revents = 0});
  }
  (void)poll(events.data(), events.size(), -1);  // Interrupted, it is asked again.
}

absl::Status LabRun::Collect() {
  absl::Status status;
  for (auto it = running_.begin(); it != running_.end();) {
    const std::optional<ChildProcess::End> end = it->process.Poll();
    // Somebody who asks to stop may have reached the cell, too.
    if (!end || stop_.stopped()) {
      ++it;
      continue;
    }
    free_groups_.push_back(it->core_group);
    const Running running = std::move(*it);
    it = running_.erase(it);
    status.Update(End(running, *end));
  }
  return status;
}

absl::Status LabRun::End(const Running& running, const ChildProcess::End& end) {
  const Cell& cell = *running.cell;
  const CellCost cost = {.wall_seconds = absl::ToDoubleSeconds(absl::Now() - running.begin),
                         .cpu_seconds = end.cpu_seconds,
                         .peak_bytes = CellBytes(cell.settings, grid_.engine, end.peak_bytes)};
  const std::string directory = directory_.UnfinishedPath(cell.id);
  const bool has_ended_well =
      end.signal == 0 && (end.exit_code == static_cast<int>(ExitCode::kOk) ||
                          end.exit_code == static_cast<int>(ExitCode::kDiverged));
  std::error_code error;
  const bool has_failed =
      !has_ended_well || !std::filesystem::exists(RunDirectory::Of(directory).SummaryPath(), error);
  const std::string label = fmt::format("{}, seed {}", CellLabel(axes_, cell.values), cell.seed());
  if (has_failed) {
    Tell(fmt::format("the cell {} {}; log: {}/lab.log", label, HowText(end),
                     directory_.FailedPath(cell.id)));
    for (const std::string& line : LastErrorLines(directory + "/lab.log", kLogLinesMax)) {
      WriteToStderr("  " + line + "\n");
    }
  }
  if (absl::Status settled = directory_.Settle(cell, has_failed, cost); !settled.ok()) {
    return settled;
  }
  if (end.exit_code == static_cast<int>(ExitCode::kIo)) {
    return absl::DataLossError(
        fmt::format("files of the cell {} cannot be read or written; {}/lab.log says which", label,
                    directory_.FailedPath(cell.id)));
  }
  if (end.exit_code == static_cast<int>(ExitCode::kConfiguration)) {
    return absl::InvalidArgumentError(
        fmt::format("the settings of the cell {} are refused; {}/lab.log says why", label,
                    directory_.FailedPath(cell.id)));
  }
  if (has_failed) {
    --total_;
    return absl::OkStatus();
  }
  costs_.Learn(cell, cost);
  ++done_;
  const CellResult result = ReadResult(directory_, cell, grid_.engine);
  const std::string left =
      done_ == total_ ? "" : fmt::format("; about {} left", DurationText(TimeLeft()));
  Tell(fmt::format("[{}/{}] {}: {}, after {}{}", done_, total_, label, OutcomeText(result),
                   DurationText(cost.wall_seconds), left));
  return absl::OkStatus();
}

absl::Duration LabRun::TimeLeft() const {
  const size_t cores = options_.core_groups.front().size();
  double seconds = 0;
  for (const Cell* cell : waiting_) seconds += costs_.WallSeconds(*cell, cores);
  for (const Running& running : running_) {
    const double spent = absl::ToDoubleSeconds(absl::Now() - running.begin);
    seconds += std::max(0.0, costs_.WallSeconds(*running.cell, cores) - spent);
  }
  return absl::Seconds(seconds / static_cast<double>(options_.core_groups.size()));
}

}  // namespace slipstream
