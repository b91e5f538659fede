#include "common/alarms/run_alarms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "common/base/duration_text.h"
#include "common/base/printable.h"

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

void AddDeadWorkers(const v1::RunStatus& status, std::vector<Alarm>& alarms) {
  std::map<std::string, std::vector<uint32_t>> by_reason;
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (worker.state() == "dead") by_reason[worker.failure()].push_back(worker.worker());
  }
  for (const auto& [reason, workers] : by_reason) {
    const std::string why = reason.empty() ? "" : ": " + Printable(reason);
    alarms.push_back({AlarmKind::kDead, Alarm::Level::kAlarm,
                      fmt::format("{} {} dead{}", WorkersText(workers),
                                  workers.size() == 1 ? "is" : "are", why)});
  }
}

void AddStalled(const v1::RunStatus& status, std::vector<Alarm>& alarms) {
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (!worker.is_stalled()) continue;
    alarms.push_back({AlarmKind::kStalled, Alarm::Level::kAlarm, StalledText(worker)});
  }
}

void AddStragglers(const v1::RunStatus& status, std::vector<Alarm>& alarms) {
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (!worker.is_straggler() || worker.is_stalled()) continue;
    alarms.push_back({AlarmKind::kStraggler, Alarm::Level::kWarning,
                      fmt::format("worker {} is a straggler: {}", worker.worker(),
                                  Printable(worker.straggler_reason()))});
  }
}

void AddNonfinite(const v1::RunStatus& status, std::vector<Alarm>& alarms) {
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (!worker.has_nonfinite()) continue;
    const v1::NonfiniteStatus& nonfinite = worker.nonfinite();
    alarms.push_back(
        {AlarmKind::kNonfinite, Alarm::Level::kWarning,
         fmt::format("worker {} left out {} mini-batch{} without finite numbers, {} in a row by "
                     "now; the last, mini-batch {}, gave {}",
                     worker.worker(), nonfinite.total(), nonfinite.total() == 1 ? "" : "es",
                     nonfinite.in_a_row(), nonfinite.batch(), Printable(nonfinite.what()))});
  }
}

/// Returns the age of the shard's newest checkpoint, or of the run while there is none.
double CheckpointAge(const v1::RunStatus& status, const v1::ShardStatus& shard) {
  return shard.has_checkpoint() ? shard.checkpoint().age_seconds() : status.seconds();
}

/// Returns whether the shard should have made a checkpoint since its newest one. The run makes none
/// where it waits for somebody.
bool IsLate(const v1::RunStatus& status, const v1::ShardStatus& shard) {
  const double interval = status.checkpoint_interval_seconds();
  if (interval == 0 || status.phase() != v1::TRAINING || status.has_missing()) return false;
  return CheckpointAge(status, shard) > 3 * interval + kCheckpointWriteSecondsMax;
}

std::string LateText(const v1::RunStatus& status, const v1::ShardStatus& shard) {
  const std::string age = DurationText(CheckpointAge(status, shard));
  const std::string interval = DurationText(status.checkpoint_interval_seconds());
  if (!shard.has_checkpoint()) {
    return fmt::format("shard {} has no checkpoint after {}, and one is due every {}",
                       shard.shard(), age, interval);
  }
  return fmt::format("the last checkpoint of shard {} is {} old, and one is due every {}",
                     shard.shard(), age, interval);
}

std::string FailureText(const v1::RunStatus& status, const v1::ShardStatus& shard) {
  const std::string last =
      shard.has_checkpoint()
          ? fmt::format("the last is {} old", DurationText(CheckpointAge(status, shard)))
          : "none is known";
  return fmt::format("shard {} cannot write or read its checkpoints, of which {}: {}",
                     shard.shard(), last, Printable(shard.checkpoint_failure()));
}

/// Returns whether the shard has made fewer versions since its return than it has lost.
bool IsBehindItsReturn(const v1::RunStatus& status, const v1::ShardStatus& shard) {
  const bool is_over = status.phase() >= v1::FINISHED;
  return !is_over && shard.generation() > 0 &&
         shard.version() < shard.returned_to() + shard.versions_lost();
}

void AddStarts(const v1::RunStatus& status, std::vector<Alarm>& alarms) {
  const v1::ShardStatus* first = nullptr;
  for (const v1::ShardStatus& shard : status.shards()) {
    if (shard.started_from().empty()) continue;
    if (first == nullptr) first = &shard;
    if (shard.started_from() == first->started_from()) continue;
    alarms.push_back({AlarmKind::kStart, Alarm::Level::kAlarm,
                      fmt::format("shard {} has begun with {}, and shard {} with {} "
                                  "(training.start_from): their directories differ",
                                  shard.shard(), Printable(shard.started_from()), first->shard(),
                                  Printable(first->started_from()))});
  }
}

void AddDurability(const v1::RunStatus& status, std::vector<Alarm>& alarms) {
  for (const v1::ShardStatus& shard : status.shards()) {
    if (IsBehindItsReturn(status, shard)) {
      alarms.push_back(
          {AlarmKind::kReturn, Alarm::Level::kWarning,
           fmt::format(
               "shard {} went on from its checkpoint of version {} (generation {}); it has lost "
               "at least {} versions so far",
               shard.shard(), shard.returned_to(), shard.generation(), shard.versions_lost())});
    }
    if (!shard.checkpoint_failure().empty()) {
      alarms.push_back({AlarmKind::kCheckpoint, Alarm::Level::kAlarm, FailureText(status, shard)});
    } else if (IsLate(status, shard)) {
      alarms.push_back({AlarmKind::kCheckpoint, Alarm::Level::kWarning, LateText(status, shard)});
    }
    if (shard.log().batch_seconds() > kLogBatchSecondsMax) {
      alarms.push_back(
          {AlarmKind::kLogSlow, Alarm::Level::kWarning,
           fmt::format("the log of shard {} takes {} for a batch, and its pushes wait for that: "
                       "its disk is slow",
                       shard.shard(), DurationText(shard.log().batch_seconds()))});
    }
  }
}

void AddPushLogs(const v1::RunStatus& status, std::vector<Alarm>& alarms) {
  for (const v1::ShardStatus& shard : status.shards()) {
    if (shard.push_log_failure().empty()) continue;
    alarms.push_back(
        {AlarmKind::kPushLog, Alarm::Level::kWarning,
         fmt::format("shard {}: {}", shard.shard(), Printable(shard.push_log_failure()))});
  }
}

void AddSlowdowns(const v1::RunStatus& status, std::vector<Alarm>& alarms) {
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (worker.slowdown().empty()) continue;
    alarms.push_back({AlarmKind::kSlowdown, Alarm::Level::kNote,
                      fmt::format("worker {} is slowed for a test (testing.workers): {}",
                                  worker.worker(), Printable(worker.slowdown()))});
  }
}

constexpr std::array<std::pair<AlarmKind, std::string_view>, 14> kKinds = {{
    {AlarmKind::kFailed, "failed"},
    {AlarmKind::kStateNotKept, "state_not_kept"},
    {AlarmKind::kMissing, "missing"},
    {AlarmKind::kDead, "dead"},
    {AlarmKind::kStalled, "stalled"},
    {AlarmKind::kStraggler, "straggler"},
    {AlarmKind::kRoundStill, "round_still"},
    {AlarmKind::kNonfinite, "nonfinite"},
    {AlarmKind::kStart, "start"},
    {AlarmKind::kReturn, "return"},
    {AlarmKind::kCheckpoint, "checkpoint"},
    {AlarmKind::kLogSlow, "log_slow"},
    {AlarmKind::kPushLog, "push_log"},
    {AlarmKind::kSlowdown, "slowdown"},
}};

}  // namespace

std::span<const std::pair<AlarmKind, std::string_view>> AlarmKinds() { return kKinds; }

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

std::vector<Alarm> AlarmsOf(const v1::RunStatus& status) {
  std::vector<Alarm> alarms;
  if (!status.failure().empty()) {
    alarms.push_back({AlarmKind::kFailed, Alarm::Level::kAlarm,
                      "the run failed: " + Printable(status.failure())});
  }
  if (!status.state_not_kept().empty()) {
    alarms.push_back({AlarmKind::kStateNotKept, Alarm::Level::kAlarm,
                      "server 0 cannot write coordinator.state, and all wait for that: " +
                          Printable(status.state_not_kept())});
  }
  if (status.has_missing()) {
    const bool has_begun = status.phase() >= v1::TRAINING;
    alarms.push_back({AlarmKind::kMissing,
                      has_begun ? Alarm::Level::kAlarm : Alarm::Level::kWarning,
                      MissingText(status)});
  }
  AddDeadWorkers(status, alarms);
  AddStalled(status, alarms);
  AddStragglers(status, alarms);
  for (const v1::WaitingRound& round : status.waiting_rounds()) {
    if (round.unchanged_seconds() < kRoundStillSecondsMax) continue;
    alarms.push_back({AlarmKind::kRoundStill, Alarm::Level::kWarning, RoundText(round)});
  }
  AddNonfinite(status, alarms);
  AddStarts(status, alarms);
  AddDurability(status, alarms);
  AddPushLogs(status, alarms);
  AddSlowdowns(status, alarms);
  return alarms;
}

}  // namespace slipstream
