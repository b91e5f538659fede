#include "server/core/coordinator/saves.h"

#include <algorithm>
#include <cmath>

namespace slipstream {
namespace {

// A shorter time does not tell how fast versions are made.
constexpr absl::Duration kMeasuredMin = absl::Milliseconds(100);

Version NewestOf(const Servers& servers) {
  Version newest{};
  for (const auto& server : servers.servers()) newest = std::max(newest, server->report.version);
  return newest;
}

std::optional<SavedVersion> NewestSaved(const ServerReport& report) {
  const auto newest = std::ranges::max_element(report.saved);
  return newest == report.saved.end() ? std::nullopt : std::optional(*newest);
}

}  // namespace

void Saves::OnReport(const Servers& servers, ShardId newest, bool together) {
  const ServerReport& report = servers.servers()[Value(newest)]->report;
  std::optional<Version>& learned_at = shards_[Value(newest)].learned_at;
  if (!learned_at.has_value() && report.orders_seen >= announced_) learned_at = report.version;
  if (!together) {
    // From now on each shard returns to its own newest checkpoint.
    order_.safe.reset();
    return;
  }
  const std::optional<SavedVersion> saved = servers.NewestSavedByAll();
  if (order_.safe < saved) order_.safe = saved;
}

void Saves::OrderIfDue(const Servers& servers, bool together, absl::Time now) {
  const Version newest = NewestOf(servers);
  if (!since_.has_value()) {
    since_ = now;
    newest_then_ = newest;
    return;
  }
  const bool is_due = now - *since_ >= interval_;
  if (!is_due && !is_awaited()) return;
  bool has_missed = false;
  for (const auto& server : servers.servers()) {
    const Progress progress = ProgressOf(server->report, together);
    if (progress == Progress::kAhead) return;
    const bool is_waited_for = together || now - *since_ < kWritingMax;
    if (progress == Progress::kWriting && is_waited_for) return;
    has_missed |= progress == Progress::kMissed;
  }
  if (is_awaited() && AllHaveSaved(servers, together)) carried_out_ = order_.number;
  const bool is_urgent = is_awaited() && (order_.number < awaited_ || has_missed);
  if (!is_due && !is_urgent) return;

  // The checkpoint of an order that is still being carried out may be complete only after the next
  // order, and is not what that asks for.
  std::vector<std::optional<Version>> saved(shards_.size());
  for (size_t i = 0; i < shards_.size(); ++i) {
    const ServerReport& report = servers.servers()[i]->report;
    const bool is_open = !is_settled_ && !HasSaved(report, order_.number, together);
    const std::optional<SavedVersion> last = NewestOfGeneration(report);
    if (last.has_value()) saved[i] = last->version;
    if (is_open) saved[i] = report.version;
  }
  factor_ = has_missed ? std::min(2 * factor_, kMarginMax) : 1;
  ++order_.number;
  order_.version = together ? Version{Value(newest) + Margin(newest, now)} : Version{};
  is_settled_ = false;
  since_ = now;
  newest_then_ = newest;
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards_[i] = {.version = servers.servers()[i]->report.version,
                  .learned_at = std::nullopt,
                  .saved = saved[i]};
  }
}

Saves::Progress Saves::ProgressOf(const ServerReport& report, bool together) const {
  const Shard& shard = shards_[Value(report.shard)];
  // The policy may have been another one when it was ordered.
  const bool was_together = order_.version != Version{};
  if (is_settled_ || was_together != together) return Progress::kDone;
  if (!together) {
    const bool has_made_versions = report.version > shard.version;
    const bool is_writing = has_made_versions && !HasSavedSince(report) && !report.cannot_save;
    return is_writing ? Progress::kWriting : Progress::kDone;
  }
  if (HasOrdered(report)) return Progress::kDone;
  if (report.version < order_.version) return Progress::kAhead;
  // A later checkpoint, such as the last one of a stage, may have taken the place of the ordered
  // one before that was written.
  const std::optional<SavedVersion> newest = NewestOfGeneration(report);
  const bool is_beyond = newest.has_value() && newest->version > order_.version;
  return is_beyond || shard.learned_at > order_.version ? Progress::kMissed : Progress::kWriting;
}

bool Saves::HasOrdered(const ServerReport& report) const {
  return std::ranges::any_of(report.saved, [&](const SavedVersion& saved) {
    return saved.generation == report.generation && saved.version == order_.version;
  });
}

uint64_t Saves::Margin(Version newest, absl::Time now) const {
  const double versions = static_cast<double>(Value(newest) - Value(newest_then_));
  const absl::Duration passed = std::max(now - *since_, kMeasuredMin);
  const double per_second = versions / absl::ToDoubleSeconds(passed);
  const double bounded = std::min(std::ceil(per_second), static_cast<double>(kMarginMax));
  const uint64_t margin = std::max(kMarginMin, static_cast<uint64_t>(bounded));
  return std::min(margin * factor_, kMarginMax);
}

uint64_t Saves::Await(uint64_t number) {
  const uint64_t next = order_.number + 1;
  const bool will_not_come = is_settled_ && number > carried_out_;
  const uint64_t awaited = number == 0 || will_not_come ? next : std::min(number, next);
  awaited_ = std::max(awaited_, awaited);
  return awaited;
}

std::optional<SavedVersion> Saves::NewestOfGeneration(const ServerReport& report) {
  std::optional<SavedVersion> newest = NewestSaved(report);
  return newest.has_value() && newest->generation == report.generation ? newest : std::nullopt;
}

bool Saves::HasSaved(const ServerReport& report, uint64_t number, bool together) const {
  const std::optional<SavedVersion> newest = NewestOfGeneration(report);
  if (is_settled_ || order_.number < number || !newest.has_value()) return false;
  if (together) return HasOrdered(report);
  const Shard& shard = shards_[Value(report.shard)];
  // A shard that has saved its newest version already has nothing to save.
  return HasSavedSince(report) ||
         (shard.learned_at.has_value() && newest->version >= *shard.learned_at);
}

bool Saves::HasSavedSince(const ServerReport& report) const {
  // A shard that makes no version before it hears of the order saves the one that it had.
  const Shard& shard = shards_[Value(report.shard)];
  const std::optional<SavedVersion> newest = NewestOfGeneration(report);
  return newest.has_value() && newest->version >= shard.version && newest->version != shard.saved;
}

bool Saves::AllHaveSaved(const Servers& servers, bool together) const {
  return std::ranges::all_of(servers.servers(), [&](const auto& server) {
    return HasSaved(server->report, order_.number, together);
  });
}

void Saves::OnInterrupted() {
  if (is_awaited()) awaited_ = std::max(awaited_, order_.number + 1);
  is_settled_ = true;
  since_.reset();
}

void Saves::OnReturned(const SavedVersion& from) {
  order_.safe = from;
  OnInterrupted();
}

}  // namespace slipstream
