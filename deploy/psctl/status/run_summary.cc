#include "deploy/psctl/status/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "common/json/json_number.h"
#include "common/json/message_json.h"
#include "common/settings/policy_rows.h"
#include "common/settings/same_rounds.h"
#include "common/settings/shards.h"
#include "deploy/psctl/status/divergence.h"
#include "deploy/psctl/status/durability_view.h"
#include "deploy/psctl/status/staleness_histogram.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json WorkersJson(const v1::RunStatus& status) {
  Json workers = Json::array();
  for (const v1::WorkerStatus& worker : status.workers()) {
    workers.push_back({{"worker", worker.worker()},
                       {"state", worker.state()},
                       {"failure", TextOrNull(worker.failure())},
                       {"pushes", worker.pushes()},
                       {"examples", worker.examples()},
                       {"nonfinite", worker.nonfinite().total()},
                       {"split_pushes", worker.split_pushes()},
                       {"examples_per_second", NumberOrNull(worker.examples_per_second())},
                       {"compute_share", NumberOrNull(worker.compute_share())},
                       {"communication_share", NumberOrNull(worker.communication_share())},
                       {"communication_hidden", NumberOrNull(worker.communication_hidden())},
                       {"overlap", NumberOrNull(worker.overlap())},
                       {"steady_overlap", NumberOrNull(worker.steady_overlap())},
                       {"staleness_mean", NumberOrNull(worker.mean_staleness())}});
  }
  return workers;
}

Json VectorClocksJson(const v1::ShardStatus& shard) {
  Json clocks = Json::array();
  for (const v1::VectorClock& clock : shard.vector_clocks()) clocks.push_back(MessageJson(clock));
  return clocks;
}

Json CheckpointJson(const v1::ShardStatus& shard) {
  if (!shard.has_checkpoint()) return nullptr;
  const v1::CheckpointStatus& checkpoint = shard.checkpoint();
  return {{"version", checkpoint.version()},
          {"age_seconds", NumberOrNull(checkpoint.age_seconds())},
          {"write_seconds", NumberOrNull(checkpoint.write_seconds())},
          {"bytes", checkpoint.bytes()}};
}

Json LogJson(const v1::ShardStatus& shard) {
  if (!shard.has_log()) return nullptr;
  const v1::LogStatus& log = shard.log();
  return {{"bytes", log.bytes()},
          {"events", log.events()},
          {"batches", log.batches()},
          {"batch_seconds", NumberOrNull(log.batch_seconds())},
          {"events_redone", log.events_redone()}};
}

Json ServersJson(const v1::RunStatus& status) {
  Json servers = Json::array();
  for (const v1::ShardStatus& shard : status.shards()) {
    servers.push_back({{"shard", shard.shard()},
                       {"address", shard.address()},
                       {"begin", shard.begin()},
                       {"end", shard.end()},
                       {"version", shard.version()},
                       {"staleness_mean", NumberOrNull(shard.staleness().mean())},
                       {"staleness", MessageJson(shard.staleness())},
                       {"vector_clocks", VectorClocksJson(shard)},
                       {"pushed_bytes", shard.pushed_bytes()},
                       {"pushed_fp32_bytes", shard.pushed_fp32_bytes()},
                       {"pulled_bytes", shard.pulled_bytes()},
                       {"pulled_fp32_bytes", shard.pulled_fp32_bytes()},
                       {"push_log_pushes", shard.push_log_pushes()},
                       {"push_log_failure", TextOrNull(shard.push_log_failure())},
                       {"generation", shard.generation()},
                       {"returned_to", shard.generation() > 0 ? Json(shard.returned_to()) : Json()},
                       {"versions_lost", shard.versions_lost()},
                       {"checkpoint", CheckpointJson(shard)},
                       {"checkpoint_failure", TextOrNull(shard.checkpoint_failure())},
                       {"log", LogJson(shard)}});
  }
  return servers;
}

std::vector<uint32_t> LostWorkers(const v1::RunStatus& status) {
  std::vector<uint32_t> lost;
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (worker.state() == "dead") lost.push_back(worker.worker());
  }
  return lost;
}

/// Returns "1 of 4: worker 3 (signal 9 (Killed)), …", or an empty text if no worker was lost.
std::string LostWorkersText(const v1::RunStatus& status) {
  std::string text;
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (worker.state() != "dead") continue;
    text += text.empty() ? "" : ", ";
    text += fmt::format("worker {}", worker.worker());
    if (!worker.failure().empty()) text += fmt::format(" ({})", worker.failure());
  }
  if (text.empty()) return "";
  return fmt::format("{} of {}: {}", LostWorkers(status).size(), status.workers_size(), text);
}

Json GuardJson(const v1::RunStatus& status) {
  if (!status.has_guard()) return nullptr;
  const v1::GuardStatus& guard = status.guard();
  return {{"action", guard.action()},     {"bound", guard.bound()},
          {"rejected", guard.rejected()}, {"dropped", guard.dropped()},
          {"scaled", guard.scaled()},     {"rounds_held_back", guard.rounds_held_back()}};
}

/// Returns the accuracy; null if the loss has no classes, or if the weights give no finite numbers.
Json AccuracyJson(const v1::EvaluationStatus& evaluation) {
  const bool is_there = evaluation.has_test_accuracy() && IsFinite(evaluation);
  return is_there ? Json(evaluation.test_accuracy()) : Json(nullptr);
}

/// Returns the policy in force and its parameters.
ConsistencySpec ConsistencyOf(const v1::RunStatus& status) {
  ConsistencySpec consistency;
  const auto row = std::ranges::find(kPolicyRows, status.policy(), &PolicyRow::name);
  if (row == kPolicyRows.end()) return consistency;
  consistency.policy = row->kind;
  for (const v1::PolicyParameter& parameter : status.policy_parameters()) {
    const bool is_known =
        std::ranges::find(row->parameters, parameter.key()) != row->parameters.end();
    if (is_known) consistency.parameters[parameter.key()] = parameter.value();
  }
  return consistency;
}

/// Returns the evaluation that says what the run has reached; null if there is none, or if the run
/// diverged after the last one.
const v1::EvaluationStatus* ResultOf(const v1::RunStatus& status) {
  const v1::EvaluationStatus* deciding = DecidingEvaluation(status);
  const bool is_older = deciding != nullptr && !deciding->final() && HasDiverged(status);
  return is_older ? nullptr : deciding;
}

}  // namespace

Json EvaluationJson(const v1::EvaluationStatus& evaluation) {
  return {{"epoch", evaluation.epoch()},
          {"epochs_measured", evaluation.epochs_measured() > 0
                                  ? NumberOrNull(evaluation.epochs_measured())
                                  : Json(nullptr)},
          {"test_accuracy", AccuracyJson(evaluation)},
          {"test_loss", NumberOrNull(evaluation.test_loss())},
          {"examples", evaluation.examples()},
          {"versions",
           std::vector<uint64_t>(evaluation.versions().begin(), evaluation.versions().end())},
          {"seconds", NumberOrNull(evaluation.seconds())},
          {"final", evaluation.final()},
          {"model", TextOrNull(evaluation.model_file())}};
}

const v1::EvaluationStatus* DecidingEvaluation(const v1::RunStatus& status) {
  for (const v1::EvaluationStatus& evaluation : status.evaluations()) {
    if (evaluation.final()) return &evaluation;
  }
  return status.evaluations().empty() ? nullptr : &*status.evaluations().rbegin();
}

std::string PolicyText(const v1::RunStatus& status) {
  std::vector<std::string> facts;
  for (const v1::PolicyParameter& parameter : status.policy_parameters()) {
    facts.push_back(fmt::format("{} = {}", parameter.key(), parameter.value()));
  }
  const auto row = std::ranges::find(kPolicyRows, status.policy(), &PolicyRow::name);
  const PolicyTraits traits = row != kPolicyRows.end() ? row->traits : PolicyTraits();
  if (traits.workers_make_weights())
    return fmt::format("{} (servers keep copies)", status.policy());
  facts.push_back(fmt::format("{} gradient{} per update", status.round_size(),
                              status.round_size() == 1 ? "" : "s"));
  if (const auto same = LargerSameN(ConsistencyOf(status), status.workers_expected())) {
    facts.push_back(fmt::format("as n = {}", *same));
  }
  if (traits.adds_in_place()) facts.emplace_back("added in place, so reads may be torn");
  return fmt::format("{} ({})", status.policy(), fmt::join(facts, ", "));
}

std::string GuardText(const v1::RunStatus& status) {
  const v1::GuardStatus& guard = status.guard();
  return fmt::format(
      "{} beyond {} (largest {}): {} rejected, {} dropped, {} scaled, {} rounds held back",
      guard.action(), guard.bound(), status.staleness().max(), guard.rejected(), guard.dropped(),
      guard.scaled(), guard.rounds_held_back());
}

std::string ValuesText(const v1::RunStatus& status) {
  uint64_t bytes[2] = {};
  uint64_t fp32_bytes[2] = {};
  for (const v1::ShardStatus& shard : status.shards()) {
    bytes[0] += shard.pushed_bytes();
    bytes[1] += shard.pulled_bytes();
    fp32_bytes[0] += shard.pushed_fp32_bytes();
    fp32_bytes[1] += shard.pulled_fp32_bytes();
  }
  std::string texts[2];
  for (int i = 0; i < 2; ++i) {
    texts[i] = BytesText(bytes[i]);
    if (bytes[i] == fp32_bytes[i]) continue;
    const double share = static_cast<double>(bytes[i]) / static_cast<double>(fp32_bytes[i]);
    texts[i] += fmt::format(" ({:.1f}% of fp32)", 100 * share);
  }
  return fmt::format("pushed {}, pulled {}", texts[0], texts[1]);
}

Json SummaryJson(const v1::RunStatus& status, const std::string& run_dir, const RunEnd& end) {
  const v1::EvaluationStatus* deciding = ResultOf(status);
  Json evaluations = Json::array();
  Json parameters = Json::object();
  for (const v1::PolicyParameter& parameter : status.policy_parameters()) {
    parameters[parameter.key()] = parameter.value();
  }
  for (const auto& evaluation : status.evaluations()) {
    evaluations.push_back(EvaluationJson(evaluation));
  }
  return {
      {"name", status.name()},
      {"run", status.run() == 0 ? Json(nullptr) : IdJson(status.run())},
      {"ended_by", TextOrNull(end.ended_by.empty() ? status.ended_by() : end.ended_by)},
      {"divergence", DivergenceJson(status)},
      {"error", TextOrNull(end.error)},
      {"log_lines", end.log_lines},
      {"exit_code", end.exit_code},
      {"phase", v1::Phase_Name(status.phase())},
      {"policy", status.policy()},
      {"policy_parameters", std::move(parameters)},
      {"round_size", status.round_size()},
      {"test_accuracy", deciding != nullptr ? AccuracyJson(*deciding) : Json(nullptr)},
      {"test_loss", deciding != nullptr ? NumberOrNull(deciding->test_loss()) : Json(nullptr)},
      {"seconds", NumberOrNull(status.seconds())},
      {"examples", status.examples()},
      {"examples_per_second", NumberOrNull(status.examples_per_second())},
      {"epochs", status.epochs()},
      {"updates", status.updates()},
      {"pushes", status.pushes()},
      {"staleness", MessageJson(status.staleness())},
      {"guard", GuardJson(status)},
      {"weights_sha256", TextOrNull(status.weights_sha256())},
      {"model", deciding != nullptr ? TextOrNull(deciding->model_file()) : Json(nullptr)},
      {"models", end.models},
      {"push_logs_complete",
       end.has_whole_push_logs.has_value() ? Json(*end.has_whole_push_logs) : Json(nullptr)},
      {"returns", ReturnsOf(status)},
      {"parameters", status.parameters()},
      {"run_dir", run_dir},
      {"evaluations", std::move(evaluations)},
      {"workers_lost", LostWorkers(status)},
      {"workers", WorkersJson(status)},
      {"servers", ServersJson(status)},
  };
}

std::vector<std::string> ModelsOf(const v1::RunStatus& status, std::vector<std::string> found) {
  std::vector<std::string> models;
  for (const v1::EvaluationStatus& evaluation : status.evaluations()) {
    if (!evaluation.model_file().empty()) models.push_back(evaluation.model_file());
  }
  const auto is_known = [&](const std::string& path) {
    return std::ranges::any_of(models, [&](const std::string& model) {
      std::error_code error;
      return std::filesystem::equivalent(model, path, error);
    });
  };
  for (std::string& path : found) {
    if (!is_known(path)) models.push_back(std::move(path));
  }
  return models;
}

Json FailureJson(const std::string& error, int exit_code, const std::string& run_dir) {
  return {{"error", error},
          {"exit_code", exit_code},
          {"run_dir", run_dir.empty() ? Json(nullptr) : Json(run_dir)}};
}

std::string SummaryText(const v1::RunStatus& status, const std::string& run_dir) {
  const v1::StalenessStatus& staleness = status.staleness();
  const v1::EvaluationStatus* deciding = ResultOf(status);
  std::vector<std::pair<std::string, std::string>> facts = {{"run", status.name()},
                                                            {"policy", PolicyText(status)}};
  if (deciding != nullptr) {
    if (deciding->has_test_accuracy()) {
      facts.emplace_back("test accuracy", AccuracyText(*deciding));
    }
    facts.emplace_back("test loss", IsFinite(*deciding)
                                        ? fmt::format("{:.4f}", deciding->test_loss())
                                        : kNotFinite);
  } else if (HasDiverged(status)) {
    facts.emplace_back("test accuracy", kNotFinite);
  }
  facts.emplace_back("ended by", status.ended_by());
  for (auto& fact : DivergenceFacts(status)) facts.push_back(std::move(fact));
  const std::string lost = LostWorkersText(status);
  if (!lost.empty()) facts.emplace_back("workers lost", lost);
  facts.emplace_back("time", DurationText(absl::Seconds(status.seconds())));
  facts.emplace_back("examples/s", ThreeDigits(status.examples_per_second()));
  facts.emplace_back("updates", fmt::format("{}", status.updates()));
  facts.emplace_back("pushes", fmt::format("{}", status.pushes()));
  facts.emplace_back("staleness",
                     fmt::format("mean {:.3f}, p50 {}, p99 {}, max {}", staleness.mean(),
                                 staleness.p50(), staleness.p99(), staleness.max()));
  facts.emplace_back("values", ValuesText(status));
  if (status.has_guard()) facts.emplace_back("guard", GuardText(status));
  if (!status.weights_sha256().empty()) {
    facts.emplace_back("weights sha256", status.weights_sha256());
  }
  if (deciding != nullptr && !deciding->model_file().empty()) {
    facts.emplace_back("model", deciding->model_file());
  }
  if (HasDurability(status)) facts.emplace_back("checkpoints", CheckpointsText(status));
  for (const v1::ShardStatus& shard : status.shards()) {
    if (shard.push_log_failure().empty()) continue;
    facts.emplace_back("push log", "cut off: " + Printable(shard.push_log_failure()));
  }
  facts.emplace_back("run directory", run_dir);

  const std::vector<uint64_t> counts(staleness.histogram().begin(), staleness.histogram().end());
  const std::string histogram = FormatHistogram(counts, staleness.max());
  return FormatFacts(facts) + (histogram.empty() ? "" : "\n" + histogram);
}

}  // namespace slipstream
