#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/simulation/planted_bug.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/simulation.h"

namespace {

bool HasAll(uint64_t seed, const std::vector<std::string>& only) {
  if (only.empty()) return true;
  const std::string settings = slipstream::Describe(slipstream::DrawScenario(seed));
  return std::ranges::all_of(only, [&settings](const std::string& text) {
    return settings.find(text) != std::string::npos;
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs simulated clusters, one for each seed, and holds them against the promises.",
               "simulate");
  uint64_t seed = 1;
  uint64_t seeds = 1;
  bool prints_trace = false;
  std::string bug_name;
  app.add_option("--seed", seed, "The first seed.");
  app.add_option("--seeds", seeds, "How many, one after another.");
  std::vector<std::string> only;
  app.add_option(
         "--only", only,
         "Leave out seeds whose settings, as they are printed, lack this, like guard=block.")
      ->take_all()
      ->expected(1);
  app.add_flag("--trace", prints_trace, "Print the settings drawn and what happens.");
  std::string names;
  for (const slipstream::PlantedBugName& known : slipstream::kPlantedBugs) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  }
  app.add_option("--bug", bug_name, "Plant a bug, to see it found: " + names + ".");
  CLI11_PARSE(app, argc, argv);

  const auto bug = slipstream::FindPlantedBug(bug_name);
  if (!bug_name.empty() && !bug.has_value()) {
    fmt::print(stderr, "simulate: no bug \"{}\"; there are: {}\n", bug_name, names);
    return 2;
  }
  uint64_t failed = 0;
  uint64_t run = 0;
  for (uint64_t i = 0; i < seeds; ++i) {
    if (!HasAll(seed + i, only)) continue;
    ++run;
    const slipstream::Simulated simulated =
        slipstream::Simulate(seed + i, bug.value_or(slipstream::PlantedBug::kNone), prints_trace);
    if (seeds == 1) {
      fmt::print("{}\n", slipstream::Describe(slipstream::DrawScenario(seed)));
      fmt::print("{} steps, {} ms, trace {:016x}\n", simulated.steps,
                 absl::ToInt64Milliseconds(simulated.time), simulated.digest);
    }
    if (simulated.findings.empty()) continue;
    ++failed;
    std::fputs(slipstream::Report(simulated).c_str(), stdout);
  }
  fmt::print("{} of {} seeds failed\n", failed, run);
  return failed == 0 ? 0 : 1;
}
