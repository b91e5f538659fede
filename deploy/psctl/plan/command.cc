#include "deploy/psctl/plan/command.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/config/run_config.h"
#include "common/json/json_text.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/config/loading.h"
#include "deploy/psctl/plan/measured_costs.h"
#include "deploy/psctl/plan/plan_view.h"
#include "deploy/psctl/plan/verdicts.h"
#include "deploy/psctl/prediction/cost_sources.h"
#include "deploy/psctl/prediction/prediction.h"
#include "deploy/psctl/prediction/run_check.h"
#include "deploy/psctl/run/directory.h"

namespace slipstream {
namespace {

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError("cannot read " + path + "; name a run directory");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

KnownCosts CostsOfFlags(const PlanArguments& arguments) {
  KnownCosts known;
  for (const auto& [key, value] : arguments.costs) {
    known[PlaceOfCost(key)] = KnownCost{value, "given"};
  }
  return known;
}

absl::StatusOr<KnownCosts> CostsOfRun(const std::string& path) {
  const RunDirectory directory = RunDirectory::Of(path);
  const absl::StatusOr<std::string> metrics = ReadAll(directory.MetricsPath());
  if (!metrics.ok()) return metrics.status();
  const ConfigResult loaded = LoadRunConfig(directory.ConfigPath());
  const auto* run = std::get_if<RunSpec>(&loaded);
  if (run == nullptr) return absl::InvalidArgumentError(directory.ConfigPath() + " has errors");
  KnownCosts known = CostsOfSteps(*metrics, *run, "from " + path);
  if (!known[PlaceOfCost("compute_per_example")]) {
    return absl::NotFoundError(directory.MetricsPath() +
                               " tells no steps, so its run says nothing of costs");
  }
  return known;
}

bool LacksAny(const KnownCosts& known, std::initializer_list<std::string_view> keys) {
  return std::ranges::any_of(keys, [&](std::string_view key) { return !known[PlaceOfCost(key)]; });
}

/// A network that flags describe is one of machines, unless they also say how many processors all
/// share.
struct CollectedCosts {
  KnownCosts known;
  bool moves_by_processors = false;

  RunCosts Costs() const {
    RunCosts costs = CostsOf(known);
    costs.moves_by_processors = moves_by_processors && costs.processors > 0;
    return costs;
  }
};

absl::StatusOr<CollectedCosts> CollectCosts(const PlanArguments& arguments,
                                            const ConfigArguments& config, const RunSpec& run) {
  CollectedCosts collected = {.known = CostsOfFlags(arguments)};
  KnownCosts& known = collected.known;
  const bool is_link_given =
      known[PlaceOfCost("link_bandwidth")] || known[PlaceOfCost("link_latency")];
  const bool is_local = !is_link_given && IsOnThisMachine(run);
  collected.moves_by_processors = is_local;
  if (is_link_given)
    AddMissing(known, [] {
      KnownCosts machines;
      machines[PlaceOfCost("processors")] = KnownCost{0, "a machine for each, as a link is given"};
      machines[PlaceOfCost("link_latency")] = KnownCost{0, "not given"};
      machines[PlaceOfCost("link_bandwidth")] = AssumedNetwork()[PlaceOfCost("link_bandwidth")];
      return machines;
    }());
  if (!arguments.from.empty()) {
    const absl::StatusOr<KnownCosts> of_run = CostsOfRun(arguments.from);
    if (!of_run.ok()) return of_run.status();
    AddMissing(known, *of_run);
  }
  if (!is_local) AddMissing(known, AssumedNetwork());
  if (!LacksAny(known, {"compute_per_example", "update_time", "fold_time", "compute_spread",
                        "link_bandwidth", "processors"})) {
    return collected;
  }
  const absl::StatusOr<KnownCosts> measured = MeasureCosts(config, run, arguments.bin_dir);
  if (!measured.ok()) return measured.status();
  KnownCosts more = *measured;
  const bool is_fixed_told = known[PlaceOfCost("compute_per_example")].has_value();
  if (is_fixed_told) more[PlaceOfCost("compute_fixed")] = std::nullopt;
  if (!is_local) more[PlaceOfCost("ring_latency")] = more[PlaceOfCost("ring_bandwidth")] = {};
  AddMissing(known, more);
  return collected;
}

absl::StatusOr<PlanReport> MakeReport(const PlanArguments& arguments, const RunSpec& run,
                                      const CollectedCosts& collected) {
  const RunCosts costs = collected.Costs();
  PlanReport report = {.name = run.name, .costs = collected.known};
  std::vector<uint32_t> numbers = arguments.workers;
  if (numbers.empty()) numbers = {run.cluster.workers};
  for (const uint32_t workers : numbers) {
    std::vector<Prediction> predictions;
    const std::vector<RunSpec> variants = PolicyVariants(run, workers);
    for (const RunSpec& variant : variants) {
      const absl::StatusOr<Prediction> prediction = Predict(variant, costs);
      if (!prediction.ok()) return prediction.status();
      predictions.push_back(*prediction);
    }
    if (workers == numbers.back()) report.verdicts = Verdicts(variants[0], costs, predictions);
    std::ranges::move(predictions, std::back_inserter(report.predictions));
  }
  return report;
}

absl::StatusOr<std::string> CheckedText(const PlanArguments& arguments, const RunSpec& run,
                                        const CollectedCosts& collected) {
  const absl::StatusOr<std::string> summary =
      ReadAll(RunDirectory::Of(arguments.check).SummaryPath());
  if (!summary.ok()) return summary.status();
  const absl::StatusOr<Prediction> prediction = Predict(run, collected.Costs());
  if (!prediction.ok()) return prediction.status();
  const auto figures = CheckRun(*prediction, *summary);
  if (!figures.ok()) return figures.status();
  const bool as_json = arguments.format == OutputFormat::kJson;
  if (!as_json) return CheckText(*figures) + "\n" + CostsText(collected.known);
  nlohmann::ordered_json answer = CheckJson(*figures);
  answer["costs"] = CostsJson(collected.known);
  return JsonText(answer);
}

}  // namespace

int PlanCommand(const PlanArguments& arguments) {
  ConfigArguments config = arguments.config;
  if (config.path.empty()) config.path = RunDirectory::Of(arguments.check).ConfigPath();
  const auto loaded = LoadConfigOrComplain(config);
  if (const auto* code = std::get_if<ExitCode>(&loaded)) return static_cast<int>(*code);
  const RunSpec& run = std::get<RunSpec>(loaded);
  const absl::StatusOr<CollectedCosts> collected = CollectCosts(arguments, config, run);
  if (!collected.ok()) return EndWith(collected.status());
  if (!arguments.check.empty()) {
    const absl::StatusOr<std::string> text = CheckedText(arguments, run, *collected);
    if (!text.ok()) return EndWith(text.status());
    WriteToStdout(*text);
    return static_cast<int>(ExitCode::kOk);
  }
  const absl::StatusOr<PlanReport> report = MakeReport(arguments, run, *collected);
  if (!report.ok()) return EndWith(report.status());
  const bool as_json = arguments.format == OutputFormat::kJson;
  WriteToStdout(as_json ? JsonText(PlanReportJson(*report)) : PlanReportText(*report));
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace slipstream
