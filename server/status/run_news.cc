#include "server/status/run_news.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/log_line.h"
#include "server/status/run_status.h"

namespace slipstream {
namespace {

CoordinatorNotes::Note NoteOf(EventKind kind, bool is_warning, const char* text,
                              std::vector<LogField> fields) {
  return {kind, is_warning, LogLine(text, std::move(fields))};
}

std::optional<uint64_t> CheckpointOf(const v1::ShardStatus& shard) {
  if (!shard.has_checkpoint()) return std::nullopt;
  return shard.checkpoint().version();
}

}  // namespace

RunNews::Notes RunNews::Update(const v1::RunStatus& status, absl::Time now) {
  Notes notes;
  if (status.phase() >= v1::FINISHED) return notes;
  AddServers(status, now, notes);
  AddStragglers(status, now, notes);
  AddRefusals(status, now, notes);
  AddCheckpoints(status, now, notes);
  updated_ = now;
  return notes;
}

void RunNews::AwaitCheckpoint() {
  next_checkpoint_ = absl::InfinitePast();
  for (auto& [number, shard] : shards_) shard.checkpoint = shard.newest;
}

void RunNews::AddServers(const v1::RunStatus& status, absl::Time now, Notes& notes) {
  if (status.phase() <= v1::WAITING_FOR_SERVERS) return;
  std::set<uint32_t> missing;
  for (const v1::MissingMembers::Server& server : status.missing().servers()) {
    missing.insert(server.shard());
    if (!silent_.emplace(server.shard(), now).second) continue;
    notes.push_back(NoteOf(EventKind::kServer, true, "server silent",
                           {{"shard", server.shard()}, {"address", server.address()}}));
  }
  for (const auto& [shard, since] : silent_) {
    if (missing.contains(shard)) continue;
    notes.push_back(NoteOf(EventKind::kServer, false, "server heard again",
                           {{"shard", shard}, {"seconds", absl::ToDoubleSeconds(now - since)}}));
  }
  std::erase_if(silent_, [&](const auto& entry) { return !missing.contains(entry.first); });
}

void RunNews::AddStragglers(const v1::RunStatus& status, absl::Time now, Notes& notes) {
  if (status.phase() != v1::TRAINING) return stragglers_.clear();
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (!worker.is_straggler()) continue;
    const auto [straggler, is_new] = stragglers_.emplace(worker.worker(), Straggler{now, now});
    straggler->second.last = now;
    if (!is_new) continue;
    notes.push_back(NoteOf(EventKind::kStraggler, true, "worker is a straggler",
                           {{"worker", worker.worker()}, {"reason", worker.straggler_reason()}}));
  }
  std::erase_if(stragglers_, [&](const auto& entry) {
    const auto& [worker, straggler] = entry;
    if (now - straggler.last < kStragglerPause) return false;
    notes.push_back(NoteOf(EventKind::kStraggler, false, "worker is no straggler any more",
                           {{"worker", worker},
                            {"seconds", absl::ToDoubleSeconds(straggler.last - straggler.since)}}));
    return true;
  });
}

void RunNews::AddRefusals(const v1::RunStatus& status, absl::Time now, Notes& notes) {
  struct Refused {
    uint64_t more = 0;
    uint64_t all = 0;
  };
  std::map<std::string, Refused> refused;
  for (const v1::ShardStatus& shard : status.shards()) {
    const auto [known, is_first] = shards_.try_emplace(shard.shard());
    if (is_first) known->second.checkpoint = CheckpointOf(shard);
    for (const auto& [outcome, count] : shard.outcomes()) {
      if (!IsRefusal(outcome)) continue;
      const uint64_t before = std::exchange(known->second.outcomes[outcome], count);
      Refused& sum = refused[outcome];
      sum.all += count;
      // Less are those of another process.
      if (!is_first) sum.more += count < before ? count : count - before;
    }
  }
  const double seconds = absl::ToDoubleSeconds(now - updated_);
  for (const auto& [outcome, sum] : refused) {
    absl::Time& next = next_refusals_.emplace(outcome, absl::InfinitePast()).first->second;
    if (static_cast<double>(sum.more) <= kRefusalsPerSecond * seconds || now < next) continue;
    next = now + kRefusalsPause;
    notes.push_back(NoteOf(EventKind::kRefusal, true, "pushes are refused in bulk",
                           {{"outcome", outcome},
                            {"pushes", sum.more},
                            {"in_seconds", seconds},
                            {"in_all", sum.all}}));
  }
}

void RunNews::AddCheckpoints(const v1::RunStatus& status, absl::Time now, Notes& notes) {
  std::set<uint64_t> versions;
  bool is_complete = status.shards_size() == static_cast<int>(shards_max_);
  for (const v1::ShardStatus& shard : status.shards()) {
    Shard& known = shards_[shard.shard()];
    const std::optional<uint64_t> saved = CheckpointOf(shard);
    known.newest = saved;
    if (saved.has_value()) versions.insert(*saved);
    if (!saved.has_value() || saved == known.checkpoint) is_complete = false;
    const std::string& failure = shard.checkpoint_failure();
    if (failure.empty() || failure == known.failure) continue;
    known.failure = failure;
    notes.push_back(NoteOf(EventKind::kCheckpoint, true, "checkpoint failed",
                           {{"shard", shard.shard()}, {"reason", failure}}));
  }
  if (!is_complete || now < next_checkpoint_) return;
  next_checkpoint_ = now + kCheckpointPause;
  for (auto& [number, shard] : shards_) shard.checkpoint = shard.newest;
  std::vector<LogField> fields = {{"version", *versions.begin()}};
  if (versions.size() > 1) fields.emplace_back("to_version", *versions.rbegin());
  notes.push_back(NoteOf(EventKind::kCheckpoint, false, "checkpoint complete", std::move(fields)));
}

}  // namespace slipstream
