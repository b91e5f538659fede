#include "server/core/coordinator/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace slipstream {
namespace {

Recovery::Outcome Failure(std::string why) { return {.failure = std::move(why)}; }

}  // namespace

Recovery::Recovery(const RunSpec& spec, const Servers& servers)
    : keeps_log_(spec.durability.keeps_log()),
      servers_(servers),
      returns_(static_cast<uint32_t>(spec.cluster.servers.size())) {
  if (!spec.durability.saves()) return;
  saves_.emplace(spec.durability.interval, static_cast<uint32_t>(spec.cluster.servers.size()));
}

const SaveOrder& Recovery::save_order() const {
  static constexpr SaveOrder kNone;
  return saves_.has_value() ? saves_->order() : kNone;
}

Recovery::Outcome Recovery::OnReport(const ServerReport& report, bool in_rounds) {
  if (!saves_.has_value()) return {};
  if (keeps_log_) return AwaitLog(report);
  returns_.OnReport(report);
  if (ReturnsTogether(in_rounds)) return ReturnAll();
  // While servers are unheard, orders cannot announce it yet.
  const bool may_return = returns_.IsLost(report.shard) && Returns::KnowsItsCheckpoints(report) &&
                          !servers_.AnyUnheard();
  return may_return ? ReturnOne(report) : Outcome();
}

void Recovery::TakeSaved(ShardId newest, bool in_rounds) {
  if (saves_.has_value()) saves_->OnReport(servers_, newest, ReturnsTogether(in_rounds));
}

Recovery::Outcome Recovery::AwaitLog(const ServerReport& report) {
  if (report.initialized) return {};
  // Another process may not know of the order, or may have ended while it wrote the checkpoint.
  saves_->OnInterrupted();
  if (!Returns::KnowsItsCheckpoints(report) || !report.saved.empty()) return {};
  return Failure(
      fmt::format("the server of shard {} was restarted, and its directory has no checkpoint of "
                  "the run (durability.directory); its weights are lost",
                  Value(report.shard)));
}

Recovery::Outcome Recovery::ReturnOne(const ServerReport& report) {
  const auto newest = std::ranges::max_element(report.saved);
  if (newest == report.saved.end()) {
    return Failure(
        fmt::format("the server of shard {} was restarted before any checkpoint of it was "
                    "complete; its weights are lost",
                    Value(report.shard)));
  }
  const Generation next{Value(returns_.HighestGeneration(report)) + 1};
  Outcome outcome = {.returned = {Return(report, next, *newest)}};
  saves_->OnInterrupted();
  return outcome;
}

Recovery::Outcome Recovery::ReturnAll() {
  std::optional<ShardId> lost;
  Generation highest{};
  for (const auto& server : servers_.servers()) {
    const ServerReport& report = server->report;
    highest = std::max(highest, returns_.HighestGeneration(report));
    if (!returns_.IsLost(report.shard)) continue;
    if (!Returns::KnowsItsCheckpoints(report)) return {};
    lost = report.shard;
  }
  // After a restart of the coordinator, what is known of the others may be old.
  if (!lost.has_value() || !servers_.AllHeard()) return {};
  const std::optional<SavedVersion> cut = servers_.NewestSavedByAll();
  if (!cut.has_value()) {
    return Failure(
        fmt::format("the server of shard {} was restarted, and there is no checkpoint that all "
                    "shards have; its weights are lost",
                    Value(*lost)));
  }
  returns_.OnInStep();
  Outcome outcome = {.together = cut};
  for (const auto& server : servers_.servers()) {
    outcome.returned.push_back(Return(server->report, Generation{Value(highest) + 1}, *cut));
  }
  saves_->OnReturned(*cut);
  return outcome;
}

Recovery::Returned Recovery::Return(const ServerReport& report, Generation generation,
                                    const SavedVersion& from) {
  const uint64_t& lost = returns_.shards()[Value(report.shard)].versions_lost;
  const uint64_t lost_before = lost;
  returns_.Return(report, generation, from);
  return {.shard = report.shard,
          .generation = generation,
          .version = from.version,
          .versions_lost = lost - lost_before};
}

bool Recovery::AnyAway() const {
  return std::ranges::any_of(
      servers_.servers(), [this](const auto& server) { return returns_.IsAway(server->report); });
}

Recovery::SaveStep Recovery::OrderSaveIfDue(bool in_rounds, absl::Time now) {
  if (!saves_.has_value() || AnyAway()) return {};
  const uint64_t number = saves_->order().number;
  const uint64_t carried_out = saves_->carried_out();
  saves_->OrderIfDue(servers_, ReturnsTogether(in_rounds), now);
  return {.is_new = saves_->order().number != number,
          .has_saved = saves_->carried_out() > carried_out};
}

SaveProgress Recovery::ProgressOf(uint64_t number, bool in_rounds) const {
  SaveProgress progress = {.is_complete = saves_->IsCarriedOut(number)};
  for (const auto& server : servers_.servers()) {
    const ServerReport& report = server->report;
    const bool has_saved =
        progress.is_complete || saves_->HasSaved(report, number, ReturnsTogether(in_rounds));
    progress.shards.push_back({.saved = Saves::NewestOfGeneration(report),
                               .has_saved = has_saved,
                               .is_away = returns_.IsAway(report)});
  }
  return progress;
}

bool Recovery::AllHaveSavedNewest() const {
  return std::ranges::all_of(servers_.servers(), [](const auto& server) {
    const ServerReport& report = server->report;
    return std::ranges::any_of(report.saved, [&report](const SavedVersion& saved) {
      return saved.generation == report.generation && saved.version == report.version;
    });
  });
}

}  // namespace slipstream
