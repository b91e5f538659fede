#include "deploy/psctl/compare/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/base/utf8.h"
#include "common/json/json_number.h"
#include "common/settings/policy_rows.h"
#include "deploy/psctl/compare/run_figures.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

// Values of settings such as lists of layers would make lines too long.
constexpr size_t kValueBytesMax = 40;

std::string TextOf(const ConsistencySpec& consistency) {
  const PolicyRow& row = RowOf(consistency.policy);
  std::string text(row.name);
  for (const auto& [key, value] : ParametersOf(row, consistency.parameters)) {
    text += fmt::format(" {}={}", key, value);
  }
  return text;
}

/// Returns a text such as "softsync n=2", or "hardsync to epoch 2, softsync n=2".
std::string PolicyOf(const RunGroup& group) {
  std::string text;
  for (const PolicyStage& stage : group.settings().policies_before) {
    text += fmt::format("{} to epoch {}, ", TextOf(stage.consistency), stage.until_epoch);
  }
  return text + TextOf(group.settings().consistency);
}

/// Returns the number of runs, such as "3", or "3 (2 different)" if seeds repeat.
std::string SeedsOf(const RunGroup& group) {
  const size_t different = group.seeds().size();
  if (different == group.runs.size()) return fmt::format("{}", different);
  return fmt::format("{} ({} different)", group.runs.size(), different);
}

std::string FigureText(const RunGroup& group, size_t index) {
  const RunFigure& figure = kRunFigures[index];
  const std::optional<MeanInterval> mean = group.Mean(index);
  if (!mean) return "-";
  std::string text = mean->Times(figure.factor).Text(figure.decimals) + std::string(figure.unit);
  if (mean->count < group.finished()) {
    text += fmt::format(" ({} of {})", mean->count, group.finished());
  }
  return text;
}

/// Returns the settings that no column shows, such as "optimizer.learning_rate=0.02".
std::string SettingsText(const RunGroup& group) {
  std::string text;
  for (const auto& [path, value] : group.differences) {
    const PolicyRow& policy = RowOf(group.settings().consistency.policy);
    const auto is_shown = [&path = path](std::string_view key) {
      return !key.empty() && path == fmt::format("consistency.{}", key);
    };
    if (path == "consistency.policy" || path == "consistency.before" ||
        std::ranges::any_of(policy.parameters, is_shown))
      continue;
    const std::string_view shown = CutUtf8(value, kValueBytesMax);
    text += fmt::format("{}{}={}{}", text.empty() ? "" : " ", path, shown,
                        shown.size() < value.size() ? "…" : "");
  }
  return text;
}

Json MeanJson(const std::optional<MeanInterval>& mean) {
  if (!mean) return nullptr;
  return {{"mean", NumberOrNull(mean->mean)},
          {"interval_95", mean->half_width ? NumberOrNull(*mean->half_width) : Json(nullptr)},
          {"count", mean->count}};
}

Json RunJson(const RunRecord& run) {
  Json diverged = nullptr;
  if (run.divergence.has_value()) {
    diverged = {{"epoch", run.divergence->epoch}, {"updates", run.divergence->updates}};
  }
  Json json = {{"directory", run.directory},
               {"seed", run.settings.seed},
               {"ended_by", run.ended_by},
               {"diverged", std::move(diverged)}};
  for (size_t i = 0; i < kRunFigures.size(); ++i) {
    json[std::string(kRunFigures[i].key)] =
        run.figures[i] ? NumberOrNull(*run.figures[i]) : Json(nullptr);
  }
  return json;
}

Json GroupJson(const RunGroup& group) {
  Json settings = Json::object();
  for (const auto& [path, value] : group.differences) settings[path] = value;
  Json ended_by = Json::object();
  Json runs = Json::array();
  for (const RunRecord& run : group.runs) {
    ended_by[run.ended_by] = ended_by.value(run.ended_by, 0) + 1;
    runs.push_back(RunJson(run));
  }
  Json json = {{"label", group.label},
               {"policy", PolicyOf(group)},
               {"settings", std::move(settings)},
               {"ended_by", std::move(ended_by)}};
  for (size_t i = 0; i < kRunFigures.size(); ++i) {
    json[std::string(kRunFigures[i].key)] = MeanJson(group.Mean(i));
  }
  json["runs"] = std::move(runs);
  return json;
}

}  // namespace

std::string ComparisonTable(const std::vector<RunGroup>& groups) {
  TableRow heading = {"run", "seeds", "policy", "ended by"};
  for (const RunFigure& figure : kRunFigures) heading.emplace_back(figure.heading);
  heading.emplace_back("settings");
  std::vector<TableRow> rows;
  bool has_settings = false;
  for (const RunGroup& group : groups) {
    TableRow row = {group.settings().name, SeedsOf(group), PolicyOf(group), group.EndedBy()};
    for (size_t i = 0; i < kRunFigures.size(); ++i) row.push_back(FigureText(group, i));
    row.push_back(SettingsText(group));
    has_settings = has_settings || !row.back().empty();
    rows.push_back(std::move(row));
  }
  if (!has_settings) {
    heading.pop_back();
    for (TableRow& row : rows) row.pop_back();
  }
  return FormatTable(heading, rows);
}

Json ComparisonJson(const std::vector<RunGroup>& groups) {
  Json all = Json::array();
  for (const RunGroup& group : groups) all.push_back(GroupJson(group));
  return {{"groups", std::move(all)}};
}

}  // namespace slipstream
