#include "server/core/coordinator_saves.h"

#include <algorithm>
#include <cmath>

namespace slipstream {
namespace {

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

void Saves::OnReport(const Servers& servers, ShardId newest, bool in_step) {
  const ServerReport& report = servers.servers()[Value(newest)]->report;
  std::optional<Version>& learned_at = shards_[Value(newest)].learned_at;
  if (!learned_at.has_value() && report.orders_seen >= announced_) learned_at = report.version;
  if (!in_step) {
    // From now on each shard returns to its own newest checkpoint.
    order_.safe.reset();
    return;
  }
  const std::optional<SavedVersion> saved = servers.NewestSavedByAll();
  if (order_.safe < saved) order_.safe = saved;
}

void Saves::OrderIfDue(const Servers& servers, bool in_step, absl::Time now) {
  const Version newest = NewestOf(servers);
  if (!since_.has_value()) {
    since_ = now;
    newest_then_ = newest;
    return;
  }
  if (now - *since_ < interval_) return;
  bool has_missed = false;
  for (const auto& server : servers.servers()) {
    const Progress progress = ProgressOf(server->report, in_step);
    if (progress == Progress::kAhead) return;
    if (progress == Progress::kWriting && now - *since_ < kIntervalsMax * interval_) return;
    has_missed |= progress == Progress::kMissed;
  }

  factor_ = has_missed ? std::min(2 * factor_, kMarginMax) : 1;
  ++order_.number;
  order_.version = in_step ? Version{Value(newest) + Margin(newest, now)} : Version{};
  is_settled_ = false;
  since_ = now;
  newest_then_ = newest;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const ServerReport& report = servers.servers()[i]->report;
    shards_[i] = {
        .version = report.version, .saved = NewestSaved(report), .learned_at = std::nullopt};
  }
}

Saves::Progress Saves::ProgressOf(const ServerReport& report, bool in_step) const {
  const Shard& shard = shards_[Value(report.shard)];
  // The shards may have been in step when it was ordered.
  const bool was_in_step = order_.version != Version{};
  if (is_settled_ || was_in_step != in_step) return Progress::kDone;
  if (!in_step) {
    const bool has_made_versions = report.version > shard.version;
    const bool has_saved = shard.saved < NewestSaved(report);
    return has_made_versions && !has_saved ? Progress::kWriting : Progress::kDone;
  }
  const auto is_ordered = [&](const SavedVersion& saved) {
    return saved.life == report.life && saved.version == order_.version;
  };
  if (std::ranges::any_of(report.saved, is_ordered)) return Progress::kDone;
  if (report.version < order_.version) return Progress::kAhead;
  return shard.learned_at > order_.version ? Progress::kMissed : Progress::kWriting;
}

uint64_t Saves::Margin(Version newest, absl::Time now) const {
  const double versions = static_cast<double>(Value(newest) - Value(newest_then_));
  const double per_second = versions / absl::ToDoubleSeconds(now - *since_);
  const double bounded = std::min(std::ceil(per_second), static_cast<double>(kMarginMax));
  const uint64_t margin = std::max(kMarginMin, static_cast<uint64_t>(bounded));
  return std::min(margin * factor_, kMarginMax);
}

void Saves::OnReturn() {
  is_settled_ = true;
  since_.reset();
}

}  // namespace slipstream
