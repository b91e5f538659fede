#include "deploy/psctl/plan/plan_view.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/json/json_number.h"
#include "common/settings/shards.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

/// The assumption behind a figure, by its key in JSON and its heading.
struct Assumption {
  const char* key;
  const char* heading;
  const char* text;
};

constexpr Assumption kAssumptions[] = {
    {"step", "step",
     "mean value analysis of a closed network of queues: exponential times (steadier ones wait "
     "less), all workers alike; in step: E[X_(K:workers)] of log-normal times, and links that "
     "serve "
     "workers one after another, each of which computes as soon as its weights are there"},
    {"compute", "compute", "a + b mu, the same in each step but for its spread"},
    {"exchange", "exchange",
     "alpha-beta, full duplex, all servers at once; less what runs beside computing: shards above "
     "one message go layer by layer, two thirds of computing are the backward pass"},
    {"update", "update", "a push's part of rounds and updates at the busiest server"},
    {"waiting", "waiting", "the rest: queues, and slower workers under policies in step and ssp"},
    {"examples_per_second", "examples/s",
     "steady: no evaluation, loss of workers, start, or end of training, when workers have no more "
     "to do while others end; backup counts gradients that join"},
    {"bounds", "at least, at most",
     "operational bounds: each worker waits for all others everywhere (in step: transfers share "
     "the links, so that all end at once); none waits for any"},
    {"speed_up", "speed-up", "against one machine that computes and updates alone"},
    {"staleness", "sigma",
     "conservation law (d workers - 1)/c: d gradients of each always under way"},
    {"staleness_beyond", "P(s>2n)",
     "workers alike, log-normal computing, queues in order of arrival"},
    {"link_use", "link", "the busiest server's busier direction; allreduce: a worker's"},
    {"processors_use", "CPU", "computing, updates and copies of this run alone"},
    {"overlap", "overlap", "computing / (computing + communication that is not hidden)"},
    {"overlap_whole", "whole",
     "overlap with the first weights, which all workers (with free lanes in a tree, aggregators) "
     "pull at the start"},
    {"server_memory", "server memory", "at its peak, as psctl validate has it"},
    {"worker_memory", "worker memory", "beside its data, on a processor"},
    {"machine_memory", "one machine",
     "memory of all processes on one: data from files are there once, others in each worker"},
};

std::string SecondsText(double seconds) { return CostText(CostUnit::kSeconds, seconds); }
std::string RateText(double rate) { return CostText(CostUnit::kBytesPerSecond, rate); }
std::string ShareText(double share) { return fmt::format("{:.1f}%", 100 * share); }
std::string NumberText(double number) {
  return number >= 1000 ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}", number);
}

std::string ChanceText(double chance) {
  if (chance <= 0) return "0";
  return chance < 1e-6 ? "<1e-6" : fmt::format("{:.2g}", chance);
}

std::string SpeedTable(const std::vector<Prediction>& predictions) {
  std::vector<TableRow> rows;
  for (const Prediction& p : predictions) {
    rows.push_back({p.policy, fmt::format("{}", p.workers), SecondsText(p.step),
                    SecondsText(p.compute), SecondsText(p.exchange), SecondsText(p.update),
                    SecondsText(p.waiting), NumberText(p.examples_per_second),
                    NumberText(p.examples_per_second_min), NumberText(p.examples_per_second_max),
                    fmt::format("{:.2f}", p.speed_up)});
  }
  return FormatTable({"policy", "workers", "step", "compute", "exchange", "update", "waiting",
                      "examples/s", "at least", "at most", "speed-up"},
                     rows);
}

std::string UseTable(const std::vector<Prediction>& predictions) {
  std::vector<TableRow> rows;
  for (const Prediction& p : predictions) {
    rows.push_back(
        {p.policy, fmt::format("{}", p.workers),
         fmt::format("{}{:.3g}", p.is_staleness_bounded ? "<=" : "", p.staleness),
         ChanceText(p.staleness_beyond), ShareText(p.overlap),
         p.overlap_whole ? ShareText(*p.overlap_whole) : "-", ShareText(p.link_use),
         p.processors_use ? ShareText(*p.processors_use) : "-", RateText(p.server_bytes_in),
         RateText(p.server_bytes_out), RateText(p.worker_bytes_in), RateText(p.worker_bytes_out),
         BytesText(p.server_memory), BytesText(p.worker_memory), BytesText(p.machine_memory)});
  }
  return FormatTable(
      {"policy", "workers", "sigma", "P(s>2n)", "overlap", "whole", "link", "CPU", "server in",
       "server out", "worker in", "worker out", "server memory", "worker memory", "one machine"},
      rows);
}

std::string FlagOf(std::string_view key) {
  std::string flag(key);
  for (char& letter : flag) {
    if (letter == '_') letter = '-';
  }
  return flag;
}

}  // namespace

std::string CostsText(const KnownCosts& costs) {
  std::vector<std::pair<std::string, std::string>> facts;
  for (size_t i = 0; i < costs.size(); ++i) {
    if (!costs[i]) continue;
    const auto& [value, origin] = *costs[i];
    facts.emplace_back("--" + FlagOf(kCostFigures[i].key),
                       CostText(kCostFigures[i].unit, value) + "  (" + origin + ")");
  }
  return "The costs, and where they come from:\n" + FormatFacts(facts);
}

Json CostsJson(const KnownCosts& costs) {
  Json json = Json::object();
  for (size_t i = 0; i < costs.size(); ++i) {
    if (!costs[i]) continue;
    json[std::string(kCostFigures[i].key)] = {{"value", NumberOrNull(costs[i]->value)},
                                              {"from", costs[i]->origin}};
  }
  return json;
}

std::string PlanReportText(const PlanReport& report) {
  std::string text = SpeedTable(report.predictions) + "\n" + UseTable(report.predictions) + "\n";
  for (const std::string& verdict : report.verdicts) text += verdict + "\n";
  text += "\n" + CostsText(report.costs);
  std::vector<std::pair<std::string, std::string>> facts;
  for (const Assumption& assumption : kAssumptions) {
    facts.emplace_back(assumption.heading, assumption.text);
  }
  return text + "\nWhat the numbers assume:\n" + FormatFacts(facts);
}

Json PlanReportJson(const PlanReport& report) {
  const auto optional = [](const std::optional<double>& value) {
    return value ? NumberOrNull(*value) : Json(nullptr);
  };
  Json predictions = Json::array();
  for (const Prediction& p : report.predictions) {
    predictions.push_back({{"policy", p.policy},
                           {"workers", p.workers},
                           {"step", NumberOrNull(p.step)},
                           {"compute", NumberOrNull(p.compute)},
                           {"exchange", NumberOrNull(p.exchange)},
                           {"update", NumberOrNull(p.update)},
                           {"waiting", NumberOrNull(p.waiting)},
                           {"examples_per_second", NumberOrNull(p.examples_per_second)},
                           {"examples_per_second_min", NumberOrNull(p.examples_per_second_min)},
                           {"examples_per_second_max", NumberOrNull(p.examples_per_second_max)},
                           {"speed_up", NumberOrNull(p.speed_up)},
                           {"speed_up_max", NumberOrNull(p.speed_up_max)},
                           {"updates_per_second", NumberOrNull(p.updates_per_second)},
                           {"pushes_per_second", NumberOrNull(p.pushes_per_second)},
                           {"effective_n", p.effective_n},
                           {"staleness", p.staleness},
                           {"staleness_is_bound", p.is_staleness_bounded},
                           {"staleness_beyond", p.staleness_beyond},
                           {"link_use", NumberOrNull(p.link_use)},
                           {"processors_use", optional(p.processors_use)},
                           {"server_bytes_in", NumberOrNull(p.server_bytes_in)},
                           {"server_bytes_out", NumberOrNull(p.server_bytes_out)},
                           {"worker_bytes_in", NumberOrNull(p.worker_bytes_in)},
                           {"worker_bytes_out", NumberOrNull(p.worker_bytes_out)},
                           {"server_memory", p.server_memory},
                           {"worker_memory", p.worker_memory},
                           {"machine_memory", p.machine_memory},
                           {"overlap", NumberOrNull(p.overlap)},
                           {"overlap_whole", optional(p.overlap_whole)},
                           {"saturation", optional(p.saturation)}});
  }
  Json assumptions = Json::object();
  for (const Assumption& assumption : kAssumptions) assumptions[assumption.key] = assumption.text;
  return {{"name", report.name},
          {"costs", CostsJson(report.costs)},
          {"predictions", std::move(predictions)},
          {"verdicts", report.verdicts},
          {"assumptions", std::move(assumptions)}};
}

}  // namespace slipstream
