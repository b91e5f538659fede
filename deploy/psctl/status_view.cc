#include "deploy/psctl/status_view.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "common/base/printable.h"
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

/// "NONFINITE 3, RETRY_LATER 12"; "none".
std::string RefusalText(const v1::RunStatus& status) {
  // Sorted, so that lines do not jump while one watches.
  const std::map<std::string, uint64_t> refusals(status.refusals().begin(),
                                                 status.refusals().end());
  std::string text;
  for (const auto& [reason, count] : refusals) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", reason, count);
  }
  return text.empty() ? "none" : text;
}

std::string RateText(const v1::RunStatus& status) {
  const std::string rate = fmt::format("{:.6g}", status.learning_rate());
  if (status.effective_learning_rate() == status.learning_rate()) return rate;
  return fmt::format("{}, effective {:.6g}", rate, status.effective_learning_rate());
}

std::string RunSummary(const v1::RunStatus& status) {
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
  facts.emplace_back("refused", RefusalText(status));
  facts.emplace_back("learning rate", RateText(status));
  facts.emplace_back("view", fmt::format("{}", status.view()));
  if (status.has_guard()) facts.emplace_back("guard", GuardText(status));
  facts.emplace_back("version skew", fmt::format("{}", status.version_skew()));
  if (const v1::EvaluationStatus* evaluation = DecidingEvaluation(status)) {
    facts.emplace_back("last evaluation", FormatEvaluation(*evaluation));
  }
  return FormatFacts(facts);
}

/// "1.5/64.0 MiB"
std::string BytesText(uint64_t bytes, uint64_t bytes_max) {
  constexpr double kMebibyte = 1 << 20;
  return fmt::format("{:.1f}/{:.1f} MiB", static_cast<double>(bytes) / kMebibyte,
                     static_cast<double>(bytes_max) / kMebibyte);
}

std::string ShardTable(const v1::RunStatus& status) {
  std::vector<TableRow> rows;
  for (const v1::ShardStatus& shard : status.shards()) {
    rows.push_back(
        {fmt::format("{}", shard.shard()), shard.address(),
         fmt::format("{}", shard.end() - shard.begin()), fmt::format("{}", shard.version()),
         fmt::format("{:.1f}", shard.updates_per_second()),
         fmt::format("{:.2f}", shard.staleness().window_mean()),
         fmt::format("{}", shard.staleness().max()),
         fmt::format("{}/{}", shard.round_contributions(), shard.round_size()),
         fmt::format("{}", shard.parked_calls()), fmt::format("{}", shard.pulls_under_way()),
         fmt::format("{}", shard.live_versions()),
         BytesText(shard.bytes_queued(), shard.bytes_queued_max()),
         HeardText(shard.silent_seconds())});
  }
  return FormatTable({"shard", "address", "parameters", "version", "updates/s", "staleness", "max",
                      "round", "parked", "pulls", "versions", "queued", "heard"},
                     rows);
}

std::string WorkerTable(const v1::RunStatus& status) {
  std::vector<TableRow> rows;
  for (const v1::WorkerStatus& worker : status.workers()) {
    const bool has_reported = worker.examples() > 0;
    rows.push_back(
        {fmt::format("{}", worker.worker()), worker.state(), worker.host(),
         fmt::format("{}", worker.pushes()), fmt::format("{:.0f}", worker.examples_per_second()),
         fmt::format("{:.0f} ms", 1000 * worker.step_seconds()),
         has_reported ? fmt::format("{:.4f}", worker.train_loss()) : "-",
         worker.has_train_accuracy() ? fmt::format("{:.1f}%", 100 * worker.train_accuracy()) : "-",
         fmt::format("{:.2f}", worker.mean_staleness()), fmt::format("{}", worker.last_staleness()),
         fmt::format("{:.0f}%", 100 * worker.compute_share()),
         fmt::format("{:.0f}%", 100 * worker.communication_share()),
         fmt::format("{:.0f}%", 100 * worker.communication_hidden()),
         fmt::format("{:.1f}s", worker.lease_left_seconds()),
         worker.is_straggler() ? "<-- STRAGGLER" : ""});
  }
  return FormatTable(
      {"worker", "state", "host", "pushes", "examples/s", "step", "loss", "accuracy", "staleness",
       "last", "compute", "communication", "communication hidden", "lease", ""},
      rows);
}

std::string StragglerLines(const v1::RunStatus& status) {
  std::string text;
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (!worker.is_straggler()) continue;
    text += fmt::format("worker {} is a straggler: {}\n", worker.worker(),
                        Printable(worker.straggler_reason()));
  }
  return text;
}

std::string WaitingLines(const v1::RunStatus& status) {
  std::string text;
  for (const v1::WaitingRound& round : status.waiting_rounds()) {
    text += fmt::format(
        "shard {} has {} of {} gradients of version {}, open for {:.1f} s, unchanged for {:.1f} s: "
        "{}\n",
        round.shard(), round.contributions(), round.round_size(), round.version(),
        round.open_seconds(), round.unchanged_seconds(), Printable(round.outlook()));
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
        nonfinite.in_a_row(), nonfinite.batch(), Printable(nonfinite.what()));
  }
  return text;
}

std::string PushLogLines(const v1::RunStatus& status) {
  std::string text;
  for (const v1::ShardStatus& shard : status.shards()) {
    if (shard.push_log_failure().empty()) continue;
    text += fmt::format("the push log of shard {} ends early: {}\n", shard.shard(),
                        Printable(shard.push_log_failure()));
  }
  return text;
}

std::string SplitLine(const v1::RunStatus& status) {
  uint64_t split = 0;
  uint64_t pushes = 0;
  for (const v1::WorkerStatus& worker : status.workers()) {
    split += worker.split_pushes();
    pushes += worker.pushes();
  }
  if (split == 0) return "";
  return fmt::format("{} of {} pushes counted at some shards and were dropped at others\n", split,
                     pushes);
}

}  // namespace

std::string StatusText(const v1::RunStatus& status) {
  const v1::StalenessStatus& staleness = status.staleness();
  const std::vector<uint64_t> counts(staleness.histogram().begin(), staleness.histogram().end());
  std::vector<std::string> parts = {RunSummary(status)};
  if (!status.shards().empty()) parts.push_back(ShardTable(status));
  if (!status.workers().empty()) parts.push_back(WorkerTable(status));
  parts.push_back(NonfiniteLines(status));
  parts.push_back(SplitLine(status));
  parts.push_back(PushLogLines(status));
  parts.push_back(StragglerLines(status));
  parts.push_back(WaitingLines(status));
  parts.push_back(FormatHistogram(counts, staleness.max()));
  std::string text;
  for (const std::string& part : parts) {
    if (!part.empty()) text += (text.empty() ? "" : "\n") + part;
  }
  return text;
}

}  // namespace slipstream
