#include "deploy/psctl/lab/lab_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/duration_text.h"
#include "common/files/whole_file.h"
#include "common/json/json_number.h"
#include "common/json/json_text.h"
#include "deploy/psctl/lab/expression.h"
#include "deploy/psctl/lab/report_page.h"
#include "deploy/psctl/lab/setup_text.h"
#include "deploy/psctl/lab/world_text.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

/// Returns whole numbers without a point.
Json NumberJson(const std::optional<double>& number) {
  if (!number) return nullptr;
  const bool is_whole = *number == std::floor(*number) && std::abs(*number) < 1e15;
  return is_whole ? Json(static_cast<int64_t>(*number)) : NumberOrNull(*number);
}

/// Returns the value of a key as JSON: a number or truth value where it is one.
Json ValueJson(const std::string& text) {
  if (text.empty()) return nullptr;
  const ExpressionValue value = ValueOfScalar(text);
  if (const auto* number = std::get_if<double>(&value)) return NumberJson(*number);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth;
  return text;
}

/// Returns the keys that say which cell a row is about.
Json KeysOf(const LabReport& report, const CellResult& result) {
  Json row = {{"cell", result.cell->id}};
  for (size_t i = 0; i < report.cells->axes.size(); ++i) {
    row[report.cells->axes[i]] = ValueJson(result.cell->values[i].value);
  }
  row["seed"] = result.cell->seed();
  return row;
}

Json ResultRow(const LabReport& report, const CellResult& result) {
  const bool is_virtual = report.is_virtual();
  Json row = KeysOf(report, result);
  row["status"] = StatusName(result);
  row["error"] = NumberJson(result.error);
  row["test_loss"] = NumberJson(result.test_loss);
  row["ended_by"] = result.ended_by;
  row["diverged_in_epoch"] = NumberJson(result.diverged_in_epoch);
  row["epochs"] = NumberJson(result.epochs);
  row[is_virtual ? "virtual_seconds" : "seconds"] = NumberJson(result.time);
  row[is_virtual ? "examples_per_virtual_second" : "examples_per_second"] = NumberJson(result.rate);
  row["updates"] = NumberJson(result.updates);
  row["pushes"] = NumberJson(result.pushes);
  row["sigma_mean"] = NumberJson(result.staleness_mean);
  row["sigma_p50"] = NumberJson(result.staleness_p50);
  row["sigma_p99"] = NumberJson(result.staleness_p99);
  row["sigma_max"] = NumberJson(result.staleness_max);
  row["sigma_beyond_2n"] = NumberJson(result.beyond_bound);
  row["cpu_seconds"] = result.cost ? NumberOrNull(result.cost->cpu_seconds) : Json(nullptr);
  row["peak_bytes"] = result.cost ? Json(result.cost->peak_bytes) : Json(nullptr);
  row["weights_sha256"] = result.weights_sha256;
  row["program"] = result.build;
  row["directory"] =
      result.build.empty() ? "" : fmt::format("cells/{}-{}", result.cell->id, result.build);
  return row;
}

std::string CsvCell(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string CsvLine(const Json& row) {
  std::vector<std::string> cells;
  for (const Json& value : row) cells.push_back(CsvCell(value));
  return fmt::format("{}\n", fmt::join(cells, ","));
}

/// Returns rows, which all have the same keys, with a line of names.
std::string Csv(const std::vector<Json>& rows) {
  if (rows.empty()) return "";
  Json names = Json::array();
  for (const auto& item : rows.front().items()) names.push_back(item.key());
  std::string text = CsvLine(names);
  for (const Json& row : rows) text += CsvLine(row);
  return text;
}

std::optional<double> HeightAt(const Curve& curve, double x) {
  const auto point = std::ranges::find(curve, x, &CurvePoint::x);
  return point == curve.end() ? std::nullopt : std::optional(point->y);
}

/// Adds a row for each measurement of a cell.
void AddCurve(const LabReport& report, const CellResult& result, std::vector<Json>& rows) {
  const RunCurves& curves = result.curves;
  const bool has_accuracy = !curves.accuracy_by_epoch.empty();
  const Curve& by_epoch = has_accuracy ? curves.accuracy_by_epoch : curves.loss_by_epoch;
  const Curve& by_time = has_accuracy ? curves.accuracy_by_time : curves.loss_by_time;
  for (size_t i = 0; i < by_epoch.size(); ++i) {
    const double epoch = by_epoch[i].x;
    Json row = KeysOf(report, result);
    row["epoch"] = NumberJson(epoch);
    row[report.is_virtual() ? "virtual_seconds" : "seconds"] =
        i < by_time.size() ? NumberJson(by_time[i].x) : Json(nullptr);
    row["error"] = has_accuracy ? Json(1 - by_epoch[i].y) : Json(nullptr);
    row["test_loss"] = NumberJson(HeightAt(curves.loss_by_epoch, epoch));
    rows.push_back(std::move(row));
  }
}

/// Adds a row for each staleness up to the largest.
void AddSigma(const LabReport& report, const CellResult& result, std::vector<Json>& rows) {
  double total = 0;
  size_t end = 0;
  for (size_t i = 0; i < result.staleness.size(); ++i) {
    total += static_cast<double>(result.staleness[i]);
    if (result.staleness[i] > 0) end = i + 1;
  }
  double up_to = 0;
  for (size_t sigma = 0; sigma < end; ++sigma) {
    const double share = static_cast<double>(result.staleness[sigma]) / total;
    up_to += share;
    Json row = KeysOf(report, result);
    row["sigma"] = sigma;
    row["gradients"] = result.staleness[sigma];
    row["share"] = share;
    row["cumulative"] = up_to;
    rows.push_back(std::move(row));
  }
}

std::vector<Json> RowsOf(const LabReport& report,
                         void (*add)(const LabReport&, const CellResult&, std::vector<Json>&)) {
  std::vector<Json> rows;
  for (const CellResult& result : *report.results) add(report, result, rows);
  return rows;
}

void AddResult(const LabReport& report, const CellResult& result, std::vector<Json>& rows) {
  rows.push_back(ResultRow(report, result));
}

std::string MarkdownTable(const ReportTable& table) {
  std::string text = fmt::format("| {} |\n|", fmt::join(table.heading, " | "));
  for (size_t i = 0; i < table.heading.size(); ++i) text += "---|";
  text += "\n";
  for (const auto& row : table.rows) text += fmt::format("| {} |\n", fmt::join(row, " | "));
  return text;
}

std::string SecondsText(const std::optional<MeanInterval>& mean) {
  return mean ? ThreeDigits(mean->mean) : "–";
}

std::string JsonLines(const std::vector<Json>& rows) {
  std::string text;
  for (const Json& row : rows) text += JsonLine(row);
  return text;
}

ReportTable PointTable(const LabReport& report) {
  ReportTable table;
  table.heading = report.cells->axes;
  const std::string unit(report.time_unit());
  table.heading.insert(table.heading.end(),
                       {"error, %", unit, "examples per " + unit.substr(0, unit.size() - 1), "⟨σ⟩",
                        "σ p99", "largest σ", "P(σ > 2n)", "cells", "diverged"});
  for (const PointResult& point : report.points) {
    std::vector<std::string> row;
    for (const CellValue& value : point.cell->values) row.push_back(value.value);
    const std::optional<MeanInterval> beyond = point.Mean(&CellResult::beyond_bound);
    row.insert(row.end(), {MeanText(point.Mean(&CellResult::error), 100, 2),
                           SecondsText(point.Mean(&CellResult::time)),
                           SecondsText(point.Mean(&CellResult::rate)),
                           MeanText(point.Mean(&CellResult::staleness_mean), 1, 2),
                           MeanText(point.Mean(&CellResult::staleness_p99), 1, 0),
                           MeanText(point.Mean(&CellResult::staleness_max), 1, 0),
                           beyond ? fmt::format("{:.2g}", beyond->mean) : "–",
                           fmt::format("{} of {}", point.done(), point.results.size()),
                           point.diverged() > 0 ? std::to_string(point.diverged()) : ""});
    table.rows.push_back(std::move(row));
  }
  return table;
}

ReportTable ReferenceTable(const LabReport& report) {
  ReportTable table;
  if (!report.reference || report.reference->matches.empty()) return table;
  const ReferenceView& view = *report.reference;
  const ReferenceRow& first = view.matches.front().row;
  for (const auto& [key, value] : first.keys) table.heading.emplace_back(LastPart(key));
  table.heading.insert(table.heading.end(), {"published error, %", "ours, %", "difference"});
  if (view.tolerance) table.heading.emplace_back("reproduced");
  for (const auto& [column, value] : first.others) table.heading.push_back("published " + column);
  table.heading.push_back("our " + std::string(report.time_unit()));
  for (const ReferenceMatch& match : view.matches) {
    std::vector<std::string> row;
    for (const auto& [key, value] : match.row.keys) row.push_back(value);
    const std::optional<double> difference = match.difference();
    row.push_back(fmt::format("{:.2f}", match.row.error_percent));
    row.push_back(match.point == nullptr ? "no such cell" : MeanText(match.ours, 1, 2));
    row.push_back(difference ? fmt::format("{:+.2f}", *difference) : "–");
    if (view.tolerance) {
      row.emplace_back(difference && std::abs(*difference) <= *view.tolerance ? "yes" : "no");
    }
    for (const auto& [column, value] : match.row.others) row.push_back(value);
    row.push_back(match.point == nullptr ? "–" : SecondsText(match.point->Mean(&CellResult::time)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

ReportTable MuLambdaTable(const LabReport& report) {
  std::map<uint64_t, std::vector<double>> groups;
  for (const PointResult& point : report.points) {
    const std::optional<MeanInterval> error = point.Mean(&CellResult::error);
    if (error) groups[MuLambdaGroup(point.cell->settings)].push_back(100 * error->mean);
  }
  ReportTable table;
  if (groups.size() < 2) return table;
  table.heading = {"μλ, about", "points", "error, %", "least", "largest"};
  for (const auto& [product, errors] : groups) {
    table.rows.push_back({std::to_string(product), std::to_string(errors.size()),
                          MeanOf(errors).Text(2), fmt::format("{:.2f}", std::ranges::min(errors)),
                          fmt::format("{:.2f}", std::ranges::max(errors))});
  }
  return table;
}

std::vector<std::string> ReportFacts(const LabReport& report) {
  std::map<std::string_view, size_t> states;
  for (const CellResult& result : *report.results) ++states[StatusName(result)];
  std::vector<std::string> counts;
  for (const auto& [name, count] : states) counts.push_back(fmt::format("{} {}", count, name));
  std::vector<std::string> facts = {
      fmt::format("{} at {}, engine {}: {}.", CountText(report.results->size(), "cell"),
                  CountText(report.points.size(), "point"), EngineName(report.grid->engine),
                  fmt::join(counts, ", "))};
  if (report.is_virtual()) {
    facts.emplace_back(
        "Times are virtual seconds, which the world of the grid decides, not this machine.");
  }
  if (report.grid->scale) {
    facts.push_back(fmt::format("Schedules made for {} epochs are shrunk to {}.",
                                report.grid->scale->epochs, report.grid->scale->run));
  }
  if (report.cells->left_out > 0) {
    facts.push_back(
        fmt::format("Left out by where: {}.", CountText(report.cells->left_out, "cell")));
  }
  for (const PointResult& point : report.points) {
    for (const CellValues& same : point.cell->same) {
      facts.push_back(fmt::format("The cell {} means the same as {}, and is not run again.",
                                  CellLabel(report.cells->axes, same),
                                  CellLabel(report.cells->axes, point.cell->values)));
    }
    if (point.diverged() == 0) continue;
    facts.push_back(fmt::format("{} of {} diverged at {}; their error is that of a guess.",
                                point.diverged(), CountText(point.results.size(), "cell"),
                                CellLabel(report.cells->axes, point.cell->values)));
  }
  return facts;
}

std::string MarkdownText(const LabReport& report) {
  std::string text = fmt::format("# {}\n", report.grid->name);
  for (const ReportSection& section : ReportSections(report)) {
    if (!section.heading.empty()) text += fmt::format("\n## {}\n", section.heading);
    text += "\n";
    for (const std::string& fact : section.facts) text += fmt::format("- {}\n", fact);
    if (!section.text.empty()) text += section.text + "\n\n";
    if (!section.table.rows.empty()) text += MarkdownTable(section.table);
    if (section.settings.empty()) continue;
    text +=
        fmt::format("\n<details><summary>Base settings</summary>\n\n```yaml\n{}```\n\n</details>\n",
                    section.settings);
  }
  return text;
}

}  // namespace

uint64_t MuLambda(const RunSpec& spec) {
  return uint64_t{spec.training.batch_size} * spec.cluster.workers;
}

uint64_t MuLambdaGroup(const RunSpec& spec) {
  return uint64_t{1} << std::lround(std::log2(static_cast<double>(MuLambda(spec))));
}

std::string MeanText(const std::optional<MeanInterval>& mean, double factor, int decimals) {
  return mean ? mean->Times(factor).Text(decimals) : "–";
}

std::vector<ReportSection> ReportSections(const LabReport& report) {
  std::vector<ReportSection> sections = {
      {.facts = ReportFacts(report)},
      {.heading = "Setup", .facts = SetupFacts(report), .settings = MapText(report.grid->base)},
      {.heading = "Points",
       .text = "Errors are means over seeds, with their 95 % confidence intervals.",
       .table = PointTable(report)}};
  if (ReportTable groups = MuLambdaTable(report); !groups.rows.empty()) {
    sections.push_back({.heading = "Error by μλ", .table = std::move(groups)});
  }
  if (report.reference) {
    sections.push_back({.heading = "Published values",
                        .text = VerdictText(*report.reference) + ".",
                        .table = ReferenceTable(report)});
  }
  return sections;
}

absl::Status WriteReports(const LabReport& report) {
  absl::Status status;
  const auto write = [&](const char* name, const std::string& text) {
    if (status.ok()) status.Update(WriteWholeFile(report.directory + "/" + name, text));
  };
  const std::vector<Json> results = RowsOf(report, AddResult);
  write("results.csv", Csv(results));
  write("results.jsonl", JsonLines(results));
  write("curves.csv", Csv(RowsOf(report, AddCurve)));
  write("sigma.csv", Csv(RowsOf(report, AddSigma)));
  write("report.md", MarkdownText(report));
  write("report.html", ReportPage(report));
  return status;
}

}  // namespace slipstream
