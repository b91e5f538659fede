#include "server/aggregator/group_pulls.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "worker/core/call_tries.h"

namespace slipstream {
namespace {

/// The age of weights: those of a later generation are newer, whatever their version.
using Age = std::pair<Generation, Version>;

Age AgeOf(const WeightsHeader& header) { return {header.generation, header.version}; }
Age AgeOf(const GroupPulls::Asked& asked) { return {asked.min_generation, asked.min_version}; }

}  // namespace

std::optional<Answer> GroupPulls::Pull(const Asked& asked, CallId call) {
  const auto of_worker = std::ranges::count_if(open_, [&asked](const auto& entry) {
    return entry.second.asked.identity.worker == asked.identity.worker;
  });
  if (static_cast<size_t>(of_worker) >= kPullsOfWorkerMax) {
    return Answer{.refusal = absl::ResourceExhaustedError("the worker has too many pulls open")};
  }
  bool is_there = newest_.has_value() && AgeOf(newest_->header) >= AgeOf(asked);
  if (AgeOf(asked) == Age()) {
    const std::optional<Asked> oldest = Next();
    const bool joins = !oldest.has_value() || AgeOf(*oldest) == Age();
    if (!joins && !is_there) return Answer{.refusal = absl::UnavailableError("no weights yet")};
    is_there = !joins;
  }
  open_[call] = {.asked = asked, .waits = !is_there};
  return is_there ? std::optional(NewestTo(call)) : std::nullopt;
}

bool GroupPulls::Cancel(CallId call) {
  const auto found = open_.find(call);
  if (found == open_.end() || !found->second.waits) return false;
  open_.erase(found);
  return true;
}

std::optional<GroupPulls::Asked> GroupPulls::Next() const {
  std::optional<Asked> next;
  for (const auto& [_, pull] : open_) {
    if (!pull.waits) continue;
    if (!next.has_value() || AgeOf(pull.asked) < AgeOf(*next)) next = pull.asked;
  }
  return next;
}

Answers GroupPulls::OnFetched(const Asked& asked, absl::StatusOr<Fetched> fetched) {
  if (!fetched.ok()) return OnFailure(asked, fetched.status());
  const bool nothing_newer_comes = AgeOf(fetched->header) < AgeOf(asked);
  const bool is_older = newest_.has_value() && AgeOf(fetched->header) < AgeOf(newest_->header);
  if (!is_older) newest_ = *std::move(fetched);
  Answers answers;
  for (auto& [call, pull] : open_) {
    const bool is_there = AgeOf(newest_->header) >= AgeOf(pull.asked);
    if (!pull.waits || !(is_there || nothing_newer_comes)) continue;
    pull.waits = false;
    answers.push_back(NewestTo(call));
  }
  return answers;
}

Answers GroupPulls::OnFailure(const Asked& asked, const absl::Status& failure) {
  const absl::Status why = absl::UnavailableError(
      "the aggregator gets no weights from the shard: " + std::string(failure.message()));
  const bool is_for_all = IsTransient(failure);
  Answers answers;
  for (auto pull = open_.begin(); pull != open_.end();) {
    const auto next = std::next(pull);
    if (pull->second.waits && (is_for_all || pull->second.asked.identity == asked.identity)) {
      answers.push_back({.call = pull->first, .refusal = why});
      open_.erase(pull);
    }
    pull = next;
  }
  return answers;
}

}  // namespace slipstream
