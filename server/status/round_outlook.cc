#include "server/status/round_outlook.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/duration_text.h"

namespace slipstream {
namespace {

// Beyond this many names, only their number is given.
constexpr size_t kNamesMax = 8;

/// Returns a text like "worker 3" or "workers 1, 2 and 3".
std::string Names(const std::vector<WorkerId>& workers) {
  if (workers.size() > kNamesMax) return fmt::format("{} workers", workers.size());
  std::string names = workers.size() == 1 ? "worker " : "workers ";
  for (size_t i = 0; i < workers.size(); ++i) {
    if (i > 0) names += i + 1 == workers.size() ? " and " : ", ";
    names += fmt::format("{}", Value(workers[i]));
  }
  return names;
}

std::string OutlookOfGradients(const OpenRoundFacts& facts) {
  if (facts.live_workers == 0) return "closes when a worker comes and pushes: none is live";
  return fmt::format("closes with {} more gradient{}, from whichever of {} live worker{}",
                     facts.gradients_missing, facts.gradients_missing == 1 ? "" : "s",
                     facts.live_workers, facts.live_workers == 1 ? "" : "s");
}

/// Returns who keeps the round open although its lease does not end; empty if nobody does.
std::string OutlookOfStalled(const std::vector<OpenRoundFacts::Awaited>& live) {
  std::string text;
  for (const OpenRoundFacts::Awaited& awaited : live) {
    if (!awaited.stalled_for.has_value()) continue;
    text +=
        fmt::format("; worker {} is stalled: it lives, and has neither fetched nor pushed for {}",
                    Value(awaited.worker), DurationText(*awaited.stalled_for));
  }
  return text;
}

std::string OutlookOfLeases(const std::vector<OpenRoundFacts::Awaited>& live) {
  const auto first = std::ranges::min_element(live, {}, &OpenRoundFacts::Awaited::lease_left);
  const double seconds = absl::ToDoubleSeconds(first->lease_left);
  const uint32_t worker = Value(first->worker);
  if (live.size() == 1) {
    return fmt::format(
        "; without a word from worker {} its lease ends in {:.1f} s, and the round closes without "
        "it",
        worker, seconds);
  }
  return fmt::format(
      "; without a word from worker {} its lease ends first, in {:.1f} s, and it is waited for no "
      "longer",
      worker, seconds);
}

}  // namespace

std::string DescribeOutlook(const OpenRoundFacts& facts) {
  if (facts.awaited.empty()) return OutlookOfGradients(facts);
  std::string text;
  if (facts.is_held_back_by_guard) text = "held back by the staleness guard: ";
  std::vector<OpenRoundFacts::Awaited> live;
  std::vector<WorkerId> live_names;
  std::vector<WorkerId> gone_names;
  for (const OpenRoundFacts::Awaited& awaited : facts.awaited) {
    if (awaited.is_live) live.push_back(awaited);
    (awaited.is_live ? live_names : gone_names).push_back(awaited.worker);
  }
  if (!gone_names.empty()) {
    text += fmt::format("{} {} gone and left out with the next view", Names(gone_names),
                        gone_names.size() == 1 ? "is" : "are");
    if (live.empty()) return text + ", which closes the round";
    text += "; ";
  }
  const std::string stalled = OutlookOfStalled(live);
  return text +
         fmt::format("closes when {} push{}", Names(live_names), live.size() == 1 ? "es" : "") +
         (stalled.empty() ? OutlookOfLeases(live) : stalled);
}

}  // namespace slipstream
