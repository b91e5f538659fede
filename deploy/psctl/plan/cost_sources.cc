#include "deploy/psctl/plan/cost_sources.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "common/base/encoding.h"
#include "deploy/psctl/config/run_plan.h"
#include "deploy/psctl/run/child_process.h"
#include "deploy/psctl/run/program_locations.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A machine where a thread has less than this share of a processor does something else besides.
constexpr double kIdleShareMin = 0.9;

void Set(KnownCosts& known, std::string_view key, double value, const std::string& origin) {
  if (std::isfinite(value) && value >= 0) known[PlaceOfCost(key)] = KnownCost{value, origin};
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

double At(const Json& json, const char* pointer) {
  const Json::json_pointer place(pointer);
  return json.contains(place) && json.at(place).is_number() ? json.at(place).get<double>() : -1;
}

/// Two files for what a program says, which are gone with the object.
class SpokenFiles {
 public:
  SpokenFiles() {
    std::string path = (fs::temp_directory_path() / "psctl-plan-XXXXXX").string();
    if (mkdtemp(path.data()) != nullptr) directory_ = path;
  }
  ~SpokenFiles() {
    std::error_code error;
    if (!directory_.empty()) fs::remove_all(directory_, error);
  }
  SpokenFiles(const SpokenFiles&) = delete;
  SpokenFiles& operator=(const SpokenFiles&) = delete;

  bool is_there() const { return !directory_.empty(); }
  std::string stdout_path() const { return directory_ + "/stdout"; }
  std::string stderr_path() const { return directory_ + "/stderr"; }

 private:
  std::string directory_;
};

/// What one step tells, in seconds.
struct StepTold {
  double compute = 0;
  double exchange = 0;  // Of the busiest lane; 0 if it is not told.
};

std::optional<StepTold> ReadStep(const Json& step) {
  const double begin = At(step, "/forward/0");
  const double end = At(step, "/backward/1");
  if (begin < 0 || end <= begin) return std::nullopt;
  StepTold told = {.compute = end - begin - std::max(0.0, At(step, "/waited"))};
  for (size_t shard = 0; step.contains("push") && shard < step["push"].size(); ++shard) {
    const std::string place = fmt::format("/{}/", shard);
    const double push = At(step, ("/push" + place + "0").c_str());
    const double pulled = At(step, ("/pull" + place + "1").c_str());
    if (push >= 0 && pulled > push) told.exchange = std::max(told.exchange, pulled - push);
  }
  return told;
}

std::vector<StepTold> ReadSteps(std::string_view metrics) {
  std::vector<StepTold> steps;
  while (!metrics.empty()) {
    const size_t end = std::min(metrics.find('\n'), metrics.size());
    const Json line = Json::parse(metrics.substr(0, end), nullptr, /*allow_exceptions=*/false);
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
    if (!line.is_object() || !line.contains("lanes") || !line["lanes"].is_array()) continue;
    for (const Json& step : line["lanes"]) {
      if (const auto told = ReadStep(step)) steps.push_back(*told);
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

absl::StatusOr<KnownCosts> MeasureCosts(const ConfigArguments& config, const RunSpec& run,
                                        const std::string& bin_dir) {
  const absl::StatusOr<std::string> program = FindLab(bin_dir);
  if (!program.ok()) return program.status();
  const SpokenFiles files;
  if (!files.is_there()) return absl::NotFoundError("cannot make a directory for ps_lab's answer");
  ChildProcess::Options options = {.command = {*program, "measure", config.path},
                                   .environment = {},
                                   .stdout_path = files.stdout_path(),
                                   .stderr_path = files.stderr_path()};
  // All of it: what PS_ variables override counts for ps_lab as it does for psctl.
  for (char** variable = environ; *variable != nullptr; ++variable) {
    options.environment.emplace_back(*variable);
  }
  for (const std::string& override : config.overrides) {
    options.command.insert(options.command.end(), {"--set", override});
  }
  absl::StatusOr<ChildProcess> child = ChildProcess::Start(options);
  if (!child.ok()) return child.status();
  std::optional<ChildProcess::End> end;
  while (!(end = child->Poll())) {
    pollfd waiting = {.fd = child->fd(), .events = POLLIN, .revents = 0};
    poll(&waiting, 1, /*timeout=*/1000);
  }
  if (end->exit_code != 0 || end->signal != 0) {
    std::string why = ReadText(files.stderr_path());
    while (why.ends_with('\n')) why.pop_back();
    return absl::InvalidArgumentError("ps_lab measure failed: " + why);
  }
  return ParseMeasured(ReadText(files.stdout_path()), run);
}

KnownCosts CostsOfSteps(std::string_view metrics, const RunSpec& run, const std::string& origin) {
  KnownCosts known;
  double sum = 0;
  double squares = 0;
  std::vector<double> exchanges;
  const std::vector<StepTold> steps = ReadSteps(metrics);
  if (steps.empty()) return known;
  for (const StepTold& step : steps) {
    sum += step.compute;
    squares += step.compute * step.compute;
    if (step.exchange > 0) exchanges.push_back(step.exchange);
  }
  const auto count = static_cast<double>(steps.size());
  const double mean = sum / count;
  Set(known, "compute_fixed", 0, origin + ", which has one size of mini-batch");
  Set(known, "compute_per_example", mean / run.training.batch_size, origin);
  const double variance = std::max(0.0, squares / count - mean * mean);
  if (mean > 0) Set(known, "compute_spread", std::sqrt(variance) / mean, origin);
  const absl::StatusOr<RunPlan> plan = PlanRun(run);
  if (exchanges.empty() || !plan.ok() || plan->shards.empty()) return known;
  const auto tenth = exchanges.begin() + static_cast<std::ptrdiff_t>(exchanges.size() / 10);
  std::nth_element(exchanges.begin(), tenth, exchanges.end());
  const double bytes = static_cast<double>(EncodedBytes(run.wire.push_codec, plan->parameters) +
                                           EncodedBytes(run.wire.pull_codec, plan->parameters)) /
                       static_cast<double>(plan->shards.size());
  const std::string quickest = origin + ", the quickest tenth of exchanges";
  Set(known, "link_latency", 0, quickest + ", in the rate");
  Set(known, "link_bandwidth", bytes / *tenth, quickest);
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
