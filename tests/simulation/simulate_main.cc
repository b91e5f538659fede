#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

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
  app.add_option("--seed", seed, "The first seed.");
  app.add_option("--seeds", seeds, "How many, one after another.");
  std::vector<std::string> only;
  app.add_option(
         "--only", only,
         "Leave out seeds whose settings, as they are printed, lack this, like guard=block.")
      ->take_all()
      ->expected(1);
  app.add_flag("--trace", prints_trace, "Print the settings drawn and what happens.");
  bool until_failure = false;
  app.add_flag("--until-failure", until_failure, "End with the first seed that fails.");
  CLI11_PARSE(app, argc, argv);

  uint64_t failed = 0;
  uint64_t run = 0;
  uint64_t digest = 0xCBF29CE484222325u;  // Of all traces.
  for (uint64_t i = 0; i < seeds; ++i) {
    if (!HasAll(seed + i, only)) continue;
    ++run;
    const slipstream::Simulated simulated =
        slipstream::Simulate(seed + i, prints_trace ? &std::cout : nullptr);
    digest = (digest ^ simulated.digest) * 0x100000001B3u;  // FNV-1a.
    if (seeds == 1) {
      fmt::print("{}\n", slipstream::Describe(slipstream::DrawScenario(seed)));
      fmt::print("{} steps, {} ms, trace {:016x}\n", simulated.steps,
                 absl::ToInt64Milliseconds(simulated.time), simulated.digest);
    }
    if (simulated.findings.empty()) continue;
    ++failed;
    std::fputs(slipstream::Report(simulated).c_str(), stdout);
    if (until_failure) break;
  }
  fmt::print("{} of {} seeds failed, traces {:016x}\n", failed, run, digest);
  return failed == 0 ? 0 : 1;
}
