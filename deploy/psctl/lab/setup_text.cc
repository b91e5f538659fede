#include "deploy/psctl/lab/setup_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "absl/time/time.h"
#include "common/process/version.h"
#include "deploy/psctl/lab/world_text.h"

namespace slipstream {
namespace {

std::string LinkText(double gigabits) {
  return gigabits == 0 ? "take no time" : fmt::format("carry {:g} Gbit/s each way", gigabits);
}

std::string SpreadText(const ComputeTimeSpec& compute) {
  switch (compute.spread) {
    case ComputeTimeSpec::Spread::kLogNormal:
      return fmt::format("times a log-normal factor of mean 1 (sigma {:g})", compute.sigma);
    case ComputeTimeSpec::Spread::kPareto:
      return fmt::format("times a Pareto factor of mean 1 (alpha {:g})", compute.alpha);
    case ComputeTimeSpec::Spread::kNone:
      break;
  }
  return "each time the same";
}

std::string WorkerText(const VirtualWorkerSpec& worker) {
  std::vector<std::string> facts;
  if (worker.slower != 1) facts.push_back(fmt::format("takes {:g} times as long", worker.slower));
  const auto add = [&](const char* what, absl::Duration when) {
    const bool happens = when != absl::ZeroDuration() && when != absl::InfiniteDuration();
    if (happens) facts.push_back(fmt::format("{} at {}", what, absl::FormatDuration(when)));
  };
  add("joins", worker.joins);
  add("leaves", worker.leaves);
  add("returns", worker.returns);
  return fmt::format("Worker {} {}.", Value(worker.worker), fmt::join(facts, ", "));
}

/// Returns which programs the results are of.
std::string ProgramText(const LabReport& report) {
  std::map<std::string, size_t> builds;
  for (const CellResult& result : *report.results) {
    if (!result.build.empty()) ++builds[result.build];
  }
  std::vector<std::string> counts;
  for (const auto& [build, count] : builds) {
    counts.push_back(fmt::format("{} of {}", CountText(count, "cell"), build));
  }
  const std::string programs = report.is_virtual() ? "ps_lab" : "ps_server and ps_worker";
  if (builds.empty()) return "No cell has a result.";
  if (builds.size() == 1) return fmt::format("Build of {}: {}.", programs, builds.begin()->first);
  return fmt::format("The results are of {} builds of {}: {}.", builds.size(), programs,
                     fmt::join(counts, ", "));
}

}  // namespace

std::vector<std::string> WorldFacts(const WorldSpec& world) {
  const ComputeTimeSpec& compute = world.compute;
  std::string batch = fmt::format("A mini-batch of μ examples takes μ · {}",
                                  absl::FormatDuration(compute.per_example));
  if (compute.fixed != absl::ZeroDuration()) batch += " + " + absl::FormatDuration(compute.fixed);
  std::vector<std::string> facts = {fmt::format("{}, {}.", batch, SpreadText(compute))};
  if (compute.machines_sigma > 0) {
    facts.push_back(
        fmt::format("Machines differ by log-normal factors (sigma {:g}).", compute.machines_sigma));
  }
  if (compute.slow_share > 0 && compute.slower != 1) {
    facts.push_back(fmt::format("The last {:g} % of the machines take {:g} times as long.",
                                100 * compute.slow_share, compute.slower));
  }
  facts.push_back(fmt::format("Links: those of workers {}, those of servers {}; latency {}.",
                              LinkText(world.network.worker_gbits),
                              LinkText(world.network.server_gbits),
                              absl::FormatDuration(world.network.latency)));
  if (world.network.group_gbits > 0) {
    facts.push_back(fmt::format("The link of a tree's group to the servers: {}.",
                                LinkText(world.network.group_gbits)));
  }
  facts.push_back(fmt::format(
      "A server takes {} for an update.",
      world.update == absl::ZeroDuration() ? "no time" : absl::FormatDuration(world.update)));
  for (const VirtualWorkerSpec& worker : world.workers) facts.push_back(WorkerText(worker));
  return facts;
}

std::vector<std::string> SetupFacts(const LabReport& report) {
  const Grid& grid = *report.grid;
  std::vector<std::string> facts = {
      report.is_virtual() ? "Engine: virtual time, real gradients; one process of ps_lab a cell."
                          : "Engine: processes, a cluster of them on one machine for each cell.",
      ProgramText(report),
      fmt::format("Made by psctl {} from {}; base settings: {}.", kVersion, grid.path,
                  grid.base_path.empty() ? "those in the grid" : grid.base_path)};
  std::vector<std::string> settings;
  for (const auto& [key, value] : grid.settings) {
    settings.push_back(fmt::format("{}: {}", key.path, FlowText(value)));
  }
  if (!settings.empty()) {
    facts.push_back(fmt::format("Set for all cells: {}.", fmt::join(settings, ", ")));
  }
  if (grid.target_error) {
    facts.push_back(fmt::format("A cell ends at an error of {:g} %.", 100 * *grid.target_error));
  }
  if (!report.is_virtual()) return facts;
  const auto world = ReadWorld(report.cells->cells.front().world, grid.path);
  if (!world.ok()) return facts;
  for (std::string& fact : WorldFacts(*world)) facts.push_back("World: " + std::move(fact));
  std::vector<std::string> changing;
  for (const CellValue& value : report.cells->cells.front().values) {
    if (value.key.starts_with("world.")) changing.push_back(value.key);
  }
  if (!changing.empty()) {
    facts.push_back(
        fmt::format("The world is that of the first point; others have other values of {}.",
                    fmt::join(changing, ", ")));
  }
  return facts;
}

}  // namespace slipstream
