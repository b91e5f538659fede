#include "deploy/psctl/status/alarms.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "deploy/psctl/status/durability_view.h"

namespace slipstream {
namespace {

// Beyond this number, workers are counted and not named.
constexpr size_t kNamesMax = 4;

/// Returns a list such as "1, 2 and 3" or "1, 2, 3, 4 and 8 more".
std::string Enumerate(const std::vector<std::string>& names) {
  std::string text;
  const size_t named = std::min(names.size(), kNamesMax);
  for (size_t i = 0; i < named; ++i) {
    const bool is_last = i + 1 == names.size();
    if (i > 0) text += is_last ? " and " : ", ";
    text += names[i];
  }
  if (names.size() > named) text += fmt::format(" and {} more", names.size() - named);
  return text;
}

std::string MissingServersText(const v1::RunStatus& status) {
  std::vector<std::string> names;
  double silent_seconds = 0;
  for (const v1::MissingMembers::Server& server : status.missing().servers()) {
    names.push_back(fmt::format("{} ({})", server.shard(), Printable(server.address())));
    for (const v1::ShardStatus& shard : status.shards()) {
      if (shard.shard() != server.shard()) continue;
      silent_seconds = std::max(silent_seconds, shard.silent_seconds());
    }
  }
  const std::string silence =
      silent_seconds > 0 ? fmt::format(", silent for {}", DurationText(silent_seconds)) : "";
  return fmt::format("server{} {}{}", names.size() == 1 ? "" : "s", Enumerate(names), silence);
}

std::string MissingAggregatorsText(const v1::RunStatus& status) {
  std::vector<std::string> names;
  for (const v1::MissingMembers::Aggregator& aggregator : status.missing().aggregators()) {
    names.push_back(fmt::format("{}.{}", aggregator.group(), aggregator.shard()));
  }
  return fmt::format("aggregator{} {}{}", names.size() == 1 ? "" : "s", Enumerate(names),
                     status.phase() == v1::INITIALIZING ? " to learn the run's members" : "");
}

bool HasLiveWorker(const v1::RunStatus& status) {
  return std::ranges::any_of(status.workers(),
                             [](const auto& worker) { return worker.state() == "live"; });
}

std::string MissingWorkersText(const v1::RunStatus& status) {
  const auto& ids = status.missing().workers();
  const std::vector<uint32_t> workers(ids.begin(), ids.end());
  const bool is_beginning = status.phase() == v1::INITIALIZING;
  if (is_beginning && workers.empty()) return "a worker that can send the initial weights";
  if (is_beginning) return WorkersText(workers) + " to send the initial weights";
  if (status.phase() < v1::TRAINING) return WorkersText(workers);
  const std::string gone_for = DurationText(status.missing().gone_seconds());
  if (!workers.empty()) {
    return fmt::format("{} in place of {}, gone for {}",
                       workers.size() == 1 ? "another worker" : "other workers",
                       WorkersText(workers), gone_for);
  }
  if (HasLiveWorker(status)) {
    const uint32_t more = status.missing().more_workers();
    return fmt::format("{} more worker{} (cluster.min_workers), for {} by now", more,
                       more == 1 ? "" : "s", gone_for);
  }
  return "a worker to come back: all are gone";
}

std::string MissingMembersText(const v1::RunStatus& status) {
  if (!status.missing().servers().empty()) return MissingServersText(status);
  if (!status.missing().aggregators().empty()) return MissingAggregatorsText(status);
  return MissingWorkersText(status);
}

void AddDeadWorkers(const v1::RunStatus& status, std::vector<ScreenLine>& lines) {
  std::map<std::string, std::vector<uint32_t>> by_reason;
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (worker.state() == "dead") by_reason[worker.failure()].push_back(worker.worker());
  }
  for (const auto& [reason, workers] : by_reason) {
    const std::string why = reason.empty() ? "" : ": " + Printable(reason);
    lines.push_back(
        {fmt::format("{} {} dead{}", WorkersText(workers), workers.size() == 1 ? "is" : "are", why),
         LineStyle::kAlarm});
  }
}

void AddStalled(const v1::RunStatus& status, std::vector<ScreenLine>& lines) {
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (!worker.is_stalled()) continue;
    lines.push_back({StalledText(worker), LineStyle::kAlarm});
  }
}

void AddStragglers(const v1::RunStatus& status, std::vector<ScreenLine>& lines) {
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (!worker.is_straggler() || worker.is_stalled()) continue;
    lines.push_back({fmt::format("worker {} is a straggler: {}", worker.worker(),
                                 Printable(worker.straggler_reason())),
                     LineStyle::kWarning});
  }
}

void AddNonfinite(const v1::RunStatus& status, std::vector<ScreenLine>& lines) {
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (!worker.has_nonfinite()) continue;
    const v1::NonfiniteStatus& nonfinite = worker.nonfinite();
    lines.push_back(
        {fmt::format("worker {} left out {} mini-batch{} without finite numbers, {} in a row by "
                     "now; the last, mini-batch {}, gave {}",
                     worker.worker(), nonfinite.total(), nonfinite.total() == 1 ? "" : "es",
                     nonfinite.in_a_row(), nonfinite.batch(), Printable(nonfinite.what())),
         LineStyle::kWarning});
  }
}

void AddPushLogs(const v1::RunStatus& status, std::vector<ScreenLine>& lines) {
  for (const v1::ShardStatus& shard : status.shards()) {
    if (shard.push_log_failure().empty()) continue;
    lines.push_back(
        {fmt::format("shard {}: {}", shard.shard(), Printable(shard.push_log_failure())),
         LineStyle::kWarning});
  }
}

void AddSlowdowns(const v1::RunStatus& status, std::vector<ScreenLine>& lines) {
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (worker.slowdown().empty()) continue;
    lines.push_back({fmt::format("worker {} is slowed for a test (testing.workers): {}",
                                 worker.worker(), Printable(worker.slowdown()))});
  }
}

}  // namespace

std::string WorkersText(const std::vector<uint32_t>& workers) {
  std::vector<std::string> names;
  for (const uint32_t worker : workers) names.push_back(fmt::format("{}", worker));
  return fmt::format("worker{} {}", workers.size() == 1 ? "" : "s", Enumerate(names));
}

std::string MissingText(const v1::RunStatus& status) {
  const double seconds = status.missing().fails_in_seconds();
  return fmt::format("waiting for {}, {}", MissingMembersText(status),
                     seconds > 0 ? "fails in " + DurationText(seconds) : "fails now");
}

std::string RoundText(const v1::WaitingRound& round) {
  return fmt::format(
      "shard {} has {} of {} gradients, none new for {}: {} (version {}, open for {})",
      round.shard(), round.contributions(), round.round_size(),
      DurationText(round.unchanged_seconds()), Printable(round.outlook()), round.version(),
      DurationText(round.open_seconds()));
}

std::string StalledText(const v1::WorkerStatus& worker) {
  return fmt::format(
      "worker {} is stalled: it lives, and has neither fetched nor pushed for {}; see what its "
      "program waits for, such as examples",
      worker.worker(), DurationText(worker.idle_seconds()));
}

std::string AwaitedText(const v1::RunStatus& status) {
  std::set<uint32_t> awaited;
  for (const v1::WaitingRound& round : status.waiting_rounds()) {
    awaited.insert(round.waiting_for().begin(), round.waiting_for().end());
  }
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (worker.is_stalled()) awaited.insert(worker.worker());
  }
  if (awaited.empty()) return "";
  return fmt::format("; {} {} not pushed", WorkersText({awaited.begin(), awaited.end()}),
                     awaited.size() == 1 ? "has" : "have");
}

std::vector<ScreenLine> StatusAlarms(const v1::RunStatus& status) {
  std::vector<ScreenLine> lines;
  if (!status.failure().empty()) {
    lines.push_back({"the run failed: " + Printable(status.failure()), LineStyle::kAlarm});
  }
  if (!status.state_not_kept().empty()) {
    lines.push_back({"server 0 cannot write coordinator.state, and all wait for that: " +
                         Printable(status.state_not_kept()),
                     LineStyle::kAlarm});
  }
  if (status.has_missing()) {
    const bool has_begun = status.phase() >= v1::TRAINING;
    lines.push_back({MissingText(status), has_begun ? LineStyle::kAlarm : LineStyle::kWarning});
  }
  AddDeadWorkers(status, lines);
  AddStalled(status, lines);
  AddStragglers(status, lines);
  for (const v1::WaitingRound& round : status.waiting_rounds()) {
    if (round.unchanged_seconds() < kRoundStillSecondsMax) continue;
    lines.push_back({RoundText(round), LineStyle::kWarning});
  }
  AddNonfinite(status, lines);
  for (ScreenLine& line : StartAlarms(status)) lines.push_back(std::move(line));
  for (ScreenLine& line : CheckpointAlarms(status)) lines.push_back(std::move(line));
  AddPushLogs(status, lines);
  AddSlowdowns(status, lines);
  return lines;
}

}  // namespace slipstream
