#include "deploy/psctl/prediction/summary_plan.h"

#include <sched.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/run_config.h"
#include "common/json/json_text.h"
#include "deploy/psctl/prediction/cost_sources.h"
#include "deploy/psctl/prediction/prediction.h"
#include "deploy/psctl/prediction/run_check.h"

namespace slipstream {
namespace {

/// As much of metrics.jsonl as is read: thousands of steps, in a tenth of a second.
constexpr size_t kMetricsBytesMax = size_t{4} << 20;

std::string FirstLines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMetricsBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

double Processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

nlohmann::ordered_json PlanOf(const nlohmann::ordered_json& summary, const std::string& directory) {
  const ConfigResult loaded = LoadRunConfig(directory + "/run.yaml");
  const auto* run = std::get_if<RunSpec>(&loaded);
  if (run == nullptr) return nullptr;
  const KnownCosts known = CostsOfSteps(FirstLines(directory + "/metrics.jsonl"), *run, "the run");
  if (!known[PlaceOfCost("compute_per_example")]) return nullptr;
  RunCosts costs = CostsOf(known);
  costs.processors = Processors();
  costs.moves_by_processors = true;
  const absl::StatusOr<Prediction> prediction = Predict(*run, costs);
  if (!prediction.ok()) return nullptr;
  const auto figures = CheckRun(*prediction, JsonCompact(summary));
  return figures.ok() ? CheckJson(*figures) : nullptr;
}

}  // namespace

nlohmann::ordered_json WithPlan(nlohmann::ordered_json summary, const std::string& directory) {
  summary["plan"] = PlanOf(summary, directory);
  return summary;
}

}  // namespace slipstream
