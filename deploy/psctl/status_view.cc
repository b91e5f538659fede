#include "deploy/psctl/status_view.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "deploy/psctl/progress_view.h"
#include "deploy/psctl/run_summary.h"
#include "deploy/psctl/staleness_histogram.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

// Servers report several times a second; one silent for so long is in trouble.
constexpr double kSilenceSecondsMax = 2;

std::string HeardText(double silent_seconds) {
  const std::string text = fmt::format("{:.1f} s ago", silent_seconds);
  return silent_seconds > kSilenceSecondsMax ? text + " <-- SILENT" : text;
}

std::string RunFacts(const v1::RunStatus& status) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"run", status.name()}, {"policy", PolicyText(status)}, {"state", FormatProgress(status)}};
  if (!status.failure().empty()) facts.emplace_back("failure", status.failure());
  if (status.plaintext_accepted()) {
    facts.emplace_back("security", "none: traffic is not encrypted, and the risk was accepted");
  }
  if (!status.ended_by().empty()) facts.emplace_back("ended by", status.ended_by());
  facts.emplace_back("seconds", fmt::format("{:.1f}", status.seconds()));
  facts.emplace_back("updates", fmt::format("{}", status.updates()));
  facts.emplace_back("pushes", fmt::format("{}", status.pushes()));
  facts.emplace_back("learning rate", fmt::format("{:.6g}", status.learning_rate()));
  facts.emplace_back("view", fmt::format("{}", status.view()));
  if (status.has_guard()) facts.emplace_back("guard", GuardText(status));
  facts.emplace_back("version skew", fmt::format("{}", status.version_skew()));
  if (const v1::EvaluationStatus* evaluation = DecidingEvaluation(status)) {
    facts.emplace_back("last evaluation", FormatEvaluation(*evaluation));
  }
  return FormatFacts(facts);
}

std::string ShardTable(const v1::RunStatus& status) {
  std::vector<TableRow> rows;
  for (const v1::ShardStatus& shard : status.shards()) {
    rows.push_back({fmt::format("{}", shard.shard()), shard.address(),
                    fmt::format("{}", shard.end() - shard.begin()),
                    fmt::format("{}", shard.version()),
                    fmt::format("{:.1f}", shard.updates_per_second()),
                    fmt::format("{:.2f}", shard.staleness().window_mean()),
                    fmt::format("{}", shard.staleness().max()),
                    fmt::format("{}/{}", shard.round_contributions(), shard.round_size()),
                    fmt::format("{}", shard.parked_pulls()),
                    fmt::format("{}", shard.bytes_queued()), HeardText(shard.silent_seconds())});
  }
  return FormatTable({"shard", "address", "parameters", "version", "updates/s", "staleness", "max",
                      "round", "parked pulls", "bytes queued", "heard"},
                     rows);
}

std::string WorkerTable(const v1::RunStatus& status) {
  std::vector<TableRow> rows;
  for (const v1::WorkerStatus& worker : status.workers()) {
    const bool has_reported = worker.examples() > 0;
    rows.push_back(
        {fmt::format("{}", worker.worker()), worker.state(), worker.host(),
         fmt::format("{}", worker.pushes()), fmt::format("{:.0f}", worker.examples_per_second()),
         has_reported ? fmt::format("{:.4f}", worker.train_loss()) : "-",
         worker.has_train_accuracy() ? fmt::format("{:.1f}%", 100 * worker.train_accuracy()) : "-",
         fmt::format("{:.2f}", worker.mean_staleness()),
         fmt::format("{:.0f}%", 100 * worker.compute_share()),
         fmt::format("{:.0f}%", 100 * worker.communication_share()),
         fmt::format("{:.0f}%", 100 * worker.communication_hidden()),
         fmt::format("{:.1f}s", worker.lease_left_seconds())});
  }
  return FormatTable({"worker", "state", "host", "pushes", "examples/s", "loss", "accuracy",
                      "staleness", "compute", "communication", "communication hidden", "lease"},
                     rows);
}

std::string WaitingLines(const v1::RunStatus& status) {
  std::string text;
  for (const v1::ShardStatus& shard : status.shards()) {
    const auto& held_back_by = shard.guard().held_back_by();
    if (!held_back_by.empty()) {
      text += fmt::format("shard {}: the guard holds the round back for worker {}\n", shard.shard(),
                          fmt::join(held_back_by, ", "));
    }
    if (shard.waiting_for().empty()) continue;
    const std::string workers = fmt::format("{}", fmt::join(shard.waiting_for(), ", "));
    text += fmt::format("shard {} has {} of {} gradients and waits for worker{} {}\n",
                        shard.shard(), shard.round_contributions(), shard.round_size(),
                        shard.waiting_for().size() == 1 ? "" : "s", workers);
  }
  return text;
}

std::string NonfiniteLines(const v1::RunStatus& status) {
  std::string text;
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (!worker.has_nonfinite()) continue;
    const v1::NonfiniteStatus& nonfinite = worker.nonfinite();
    text += fmt::format(
        "worker {} left out {} mini-batch{} without finite numbers, {} in a row by now; the last, "
        "mini-batch {}, gave {}\n",
        worker.worker(), nonfinite.total(), nonfinite.total() == 1 ? "" : "es",
        nonfinite.in_a_row(), nonfinite.batch(), nonfinite.what());
  }
  return text;
}

}  // namespace

std::string StatusText(const v1::RunStatus& status) {
  const v1::StalenessStatus& staleness = status.staleness();
  const std::vector<uint64_t> counts(staleness.histogram().begin(), staleness.histogram().end());
  std::vector<std::string> parts = {RunFacts(status)};
  if (!status.shards().empty()) parts.push_back(ShardTable(status));
  if (!status.workers().empty()) parts.push_back(WorkerTable(status));
  parts.push_back(NonfiniteLines(status));
  parts.push_back(WaitingLines(status));
  parts.push_back(FormatHistogram(counts, staleness.max()));
  std::string text;
  for (const std::string& part : parts) {
    if (!part.empty()) text += (text.empty() ? "" : "\n") + part;
  }
  return text;
}

std::string StatusJson(const v1::RunStatus& status) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  // It can fail only for Any, which the status does not contain.
  PS_CHECK(google::protobuf::util::MessageToJsonString(status, &text, options).ok());
  return text;
}

}  // namespace slipstream
