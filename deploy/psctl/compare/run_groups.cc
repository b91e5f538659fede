#include "deploy/psctl/compare/run_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "common/config/field_table.h"

namespace slipstream {
namespace {

/// Returns the settings with defaults in place of the seed and the settings that do not count.
RunSpec Comparable(RunSpec spec) {
  const RunSpec defaults;
  spec.seed = defaults.seed;
  spec.model_files.save_dir = defaults.model_files.save_dir;
  spec.worker.save_state = defaults.worker.save_state;
  spec.durability.directory = defaults.durability.directory;
  spec.log = defaults.log;
  spec.run = defaults.run;
  spec.security = defaults.security;
  return spec;
}

/// Returns the value of a key in run.yaml, or an empty text if the key has no part in the run.
std::string ValueIn(const RunSpec& spec, const Field& field) {
  const bool has_part = field.Applies(spec) && (field.is_on == nullptr || field.is_on(spec));
  return has_part ? WriteField(field.type, field.get(spec)) : "";
}

std::vector<const Field*> DifferingFields(const std::vector<RunSpec>& specs) {
  std::vector<const Field*> differing;
  for (const Field& field : Fields()) {
    if (field.path == "name") continue;
    const std::string first = ValueIn(specs.front(), field);
    const auto differs = [&](const RunSpec& spec) { return ValueIn(spec, field) != first; };
    if (std::ranges::any_of(specs, differs)) differing.push_back(&field);
  }
  return differing;
}

/// Returns a label such as "fashion async learning_rate=0.02".
std::string LongLabel(const RunGroup& group) {
  std::string label = group.settings().name;
  for (const auto& [path, value] : group.differences) {
    const std::string name = path.substr(path.rfind('.') + 1);
    label += path == "consistency.policy" ? " " + value : fmt::format(" {}={}", name, value);
  }
  return label;
}

}  // namespace

std::set<uint64_t> RunGroup::seeds() const {
  std::set<uint64_t> seeds;
  for (const RunRecord& run : runs) seeds.insert(run.settings.seed);
  return seeds;
}

size_t RunGroup::finished() const {
  return runs.size() - static_cast<size_t>(std::ranges::count_if(runs, &RunRecord::failed));
}

std::optional<MeanInterval> RunGroup::Mean(size_t figure) const {
  const bool counts_diverged =
      figure == kAccuracyFigure || std::ranges::all_of(runs, [](const RunRecord& run) {
        return run.failed() || run.divergence.has_value();
      });
  std::vector<double> values;
  for (const RunRecord& run : runs) {
    if (run.failed() || (run.divergence.has_value() && !counts_diverged)) continue;
    if (run.figures.at(figure)) values.push_back(*run.figures[figure]);
  }
  if (values.empty()) return std::nullopt;
  return MeanOf(values);
}

std::string RunGroup::EndedBy() const {
  std::map<std::string, int> counts;
  for (const RunRecord& run : runs) ++counts[run.EndText()];
  if (counts.size() == 1) return counts.begin()->first;
  std::vector<std::string> texts;
  for (const auto& [ended_by, count] : counts) {
    texts.push_back(fmt::format("{} {}", count, ended_by));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::vector<RunGroup> GroupRuns(const std::vector<RunRecord>& runs) {
  std::vector<RunGroup> groups;
  std::vector<RunSpec> specs;  // The settings of each group.
  for (const RunRecord& run : runs) {
    const RunSpec spec = Comparable(run.settings);
    const auto found = std::ranges::find(specs, spec);
    if (found == specs.end()) {
      specs.push_back(spec);
      groups.push_back({.label = spec.name, .runs = {run}, .differences = {}});
    } else {
      groups[static_cast<size_t>(found - specs.begin())].runs.push_back(run);
    }
  }
  if (groups.size() < 2) return groups;
  for (const Field* field : DifferingFields(specs)) {
    for (size_t i = 0; i < groups.size(); ++i) {
      const std::string value = ValueIn(specs[i], *field);
      if (!value.empty()) groups[i].differences.emplace_back(field->path, value);
    }
  }
  for (RunGroup& group : groups) {
    const std::string& name = group.settings().name;
    const auto has_name = [&](const RunSpec& spec) { return spec.name == name; };
    if (std::ranges::count_if(specs, has_name) > 1) group.label = LongLabel(group);
  }
  return groups;
}

}  // namespace slipstream
