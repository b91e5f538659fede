#include "worker/core/work_turns.h"

#include <algorithm>
#include <variant>

namespace slipstream {

WorkTurns::Rest WorkTurns::OnFinished(uint32_t slot) {
  finished_[slot] = true;
  if (!std::ranges::all_of(finished_, [](bool is_finished) { return is_finished; })) {
    return Rest::kOthersGoOn;
  }
  // The end of rounds may be that of a stage.
  return has_no_more_units_ ? Rest::kOver : Rest::kAwaitNews;
}

void WorkTurns::OnNews(const WorkNews& news) {
  if (const auto* next = std::get_if<NextStage>(&news)) {
    const bool goes_on = next->stage.since <= stage_;
    stage_ = next->stage.number;
    if (!goes_on) finished_.assign(finished_.size(), false);
  } else if (std::holds_alternative<ShardsReturned>(news)) {
    finished_.assign(finished_.size(), false);
  } else if (std::holds_alternative<NoMoreUnits>(news)) {
    has_no_more_units_ = true;
  }
}

}  // namespace slipstream
