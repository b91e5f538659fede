#include "deploy/psctl/prediction/cost_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "deploy/psctl/config/run_plan.h"

namespace slipstream {
namespace {

using Json = nlohmann::json;

/// A machine where a thread has less than this share of a processor does something else besides.
constexpr double kIdleShareMin = 0.9;

void Set(KnownCosts& known, std::string_view key, double value, const std::string& origin) {
  if (std::isfinite(value) && value >= 0) known[PlaceOfCost(key)] = KnownCost{value, origin};
}

double At(const Json& json, const char* pointer) {
  const Json::json_pointer place(pointer);
  return json.contains(place) && json.at(place).is_number() ? json.at(place).get<double>() : -1;
}

/// The figures of one step, in seconds.
struct StepTold {
  double compute = 0;
  double exchange = 0;  // Of the busiest lane; 0 if it is not told.
};

std::optional<StepTold> ReadStep(const Json& step, const RunSpec& run) {
  const double begin = At(step, "/forward/0");
  const double end = At(step, "/backward/1");
  if (begin < 0 || end <= begin) return std::nullopt;
  const double taken = end - begin - std::max(0.0, At(step, "/waited"));
  const auto worker = static_cast<uint32_t>(std::max(0.0, At(step, "/worker")));
  const WorkerSlowdown slowdown = run.testing.SlowdownOf(WorkerId{worker});
  StepTold told = {.compute = std::max(0.0, taken - absl::ToDoubleSeconds(slowdown.delay)) /
                              slowdown.slower};
  for (size_t shard = 0; step.contains("push") && shard < step["push"].size(); ++shard) {
    const std::string place = fmt::format("/{}/", shard);
    const double push = At(step, ("/push" + place + "0").c_str());
    const double pulled = At(step, ("/pull" + place + "1").c_str());
    if (push >= 0 && pulled > push) told.exchange = std::max(told.exchange, pulled - push);
  }
  return told;
}

/// Returns the value that `share` of the values lie below. REQUIRES: there are values.
double ValueAbove(double share, std::vector<double> values) {
  const auto place =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size()));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

double QuickestTenth(const std::vector<double>& times) { return ValueAbove(0.1, times); }

/// Returns the deviation by the mean. Where processors are shared, half of what lies between the
/// 16th and the 84th percentile stands for it: beyond are steps that the processor left.
double SpreadOf(const std::vector<double>& times, bool shares) {
  if (shares) {
    const double middle = ValueAbove(0.84, times) - ValueAbove(0.16, times);
    return middle / 2 / ValueAbove(0.5, times);
  }
  double sum = 0;
  double squares = 0;
  for (const double time : times) {
    sum += time;
    squares += time * time;
  }
  const auto count = static_cast<double>(times.size());
  return std::sqrt(std::max(0.0, squares / count - sum / count * sum / count)) / (sum / count);
}

std::vector<StepTold> ReadSteps(std::string_view metrics, const RunSpec& run) {
  std::vector<StepTold> steps;
  while (!metrics.empty()) {
    const size_t end = std::min(metrics.find('\n'), metrics.size());
    const Json line = Json::parse(metrics.substr(0, end), nullptr, /*allow_exceptions=*/false);
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
    if (!line.is_object() || !line.contains("lanes") || !line["lanes"].is_array()) continue;
    for (const Json& step : line["lanes"]) {
      if (const auto told = ReadStep(step, run)) steps.push_back(*told);
    }
  }
  return steps;
}

}  // namespace

absl::StatusOr<KnownCosts> ParseMeasured(std::string_view text, const RunSpec& run) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (At(json, "/compute/per_example") < 0 || At(json, "/local/bytes_per_second") <= 0) {
    return absl::DataLossError("ps_lab measure has printed something else than its figures");
  }
  const std::string origin = "measured on this machine";
  const bool is_shared = run.wire.may_share_memory();
  const std::string way = is_shared ? "/local" : "/loopback";
  KnownCosts known;
  Set(known, "compute_fixed", At(json, "/compute/fixed"), origin);
  Set(known, "compute_per_example", At(json, "/compute/per_example"), origin);
  Set(known, "compute_spread", At(json, "/compute/spread"), origin);
  Set(known, "update_time", At(json, "/update/rule"), origin);
  Set(known, "fold_time", At(json, "/update/fold"), origin);
  const std::string of_link = origin + (is_shared ? ", shared memory" : ", loopback");
  Set(known, "link_latency", At(json, (way + "/latency").c_str()), of_link);
  Set(known, "link_bandwidth", At(json, (way + "/bytes_per_second").c_str()), of_link);
  Set(known, "message_overhead", At(json, (way + "/message").c_str()), of_link);
  Set(known, "ring_latency", At(json, "/loopback/latency"), origin + ", loopback");
  Set(known, "ring_bandwidth", At(json, "/loopback/bytes_per_second"), origin + ", loopback");
  const double share = At(json, "/compute/processor_share");
  std::string of_processors = origin;
  if (share >= 0 && share < kIdleShareMin) {
    of_processors += fmt::format(
        ", which is BUSY: computing had {:.0f}% of one. Predictions are for a machine that is not",
        100 * share);
  }
  Set(known, "processors", At(json, "/processors"), of_processors);
  return known;
}

KnownCosts CostsOfSteps(std::string_view metrics, const RunSpec& run, const std::string& origin) {
  KnownCosts known;
  std::vector<double> computing;
  std::vector<double> exchanges;
  for (const StepTold& step : ReadSteps(metrics, run)) {
    computing.push_back(step.compute);
    if (step.exchange > 0) exchanges.push_back(step.exchange);
  }
  if (computing.empty()) return known;
  const double mean = std::accumulate(computing.begin(), computing.end(), 0.0) /
                      static_cast<double>(computing.size());
  const std::string quickest = origin + ", its quickest tenth";
  const bool shares = IsOnThisMachine(run);
  Set(known, "compute_fixed", 0, origin + ", which has one size of mini-batch");
  Set(known, "compute_per_example",
      (shares ? QuickestTenth(computing) : mean) / run.training.batch_size,
      shares ? quickest + " of steps, as processors are shared" : origin);
  if (mean > 0) Set(known, "compute_spread", SpreadOf(computing, shares), origin);
  const absl::StatusOr<RunPlan> plan = PlanRun(run);
  if (exchanges.empty() || !plan.ok() || plan->shards.empty()) return known;
  const double bytes = static_cast<double>(EncodedBytes(run.wire.push_codec, plan->parameters) +
                                           EncodedBytes(run.wire.pull_codec, plan->parameters)) /
                       static_cast<double>(shares ? 1 : plan->shards.size());
  Set(known, "link_latency", 0, quickest + " of exchanges, in the rate");
  Set(known, "link_bandwidth", bytes / QuickestTenth(exchanges), quickest + " of exchanges");
  return known;
}

bool IsOnThisMachine(const RunSpec& run) {
  return std::ranges::all_of(run.cluster.servers, [](const std::string& server) {
    return server.starts_with("localhost:") || server.starts_with("127.") ||
           server.starts_with("[::1]:");
  });
}

KnownCosts AssumedNetwork() {
  const std::string origin = "assumed; nobody said";
  KnownCosts known;
  Set(known, "link_latency", 50e-6, origin);
  Set(known, "link_bandwidth", 125e6, origin);
  Set(known, "processors", 0, "a machine for each worker and server");
  return known;
}

}  // namespace slipstream
