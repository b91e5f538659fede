#include "worker/core/session_flow.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/check.h"

namespace slipstream {

SessionFlow::SessionFlow(const WorkerSession::Options& options, bool has_free_lanes,
                         std::vector<UnitProgress>& progress)
    : session_(options),
      calls_(options.core.depth),
      has_free_lanes_(has_free_lanes),
      progress_(progress),
      turns_(options.core.depth) {}

void SessionFlow::TakeTurn() {
  HeedOrders();
  Advance(turn_, [this](const WorkerCore::Action& action) { OnTurn(action); });
}

void SessionFlow::OnTurn(const WorkerCore::Action& action) {
  if (const auto* compute = std::get_if<WorkerCore::ComputeBatches>(&action)) {
    calls_[turn_].batches = compute->batches;
    return Compute();
  }
  if (std::holds_alternative<WorkerCore::AwaitUnit>(action)) return AwaitUnit(0);
  if (has_free_lanes_) RestNewest();
  switch (turns_.OnFinished(turn_)) {
    case WorkTurns::Rest::kAwaitNews:
      return AwaitUnit(0);
    case WorkTurns::Rest::kOver:
      return Finish();
    case WorkTurns::Rest::kOthersGoOn:
      return NextTurn();
  }
}

void SessionFlow::NextTurn() {
  turn_ = (turn_ + 1) % calls_.size();
  TakeTurn();
}

void SessionFlow::Await(std::function<bool()> is_over, std::function<void()> then) {
  PS_CHECK(!waiting_.has_value());
  waiting_ = {std::move(is_over), std::move(then)};
  CheckWaiting();
}

void SessionFlow::CheckWaiting() {
  if (is_stopped_ || !waiting_.has_value() || !waiting_->is_over()) return;
  const Waiting waiting = *std::exchange(waiting_, std::nullopt);
  waiting.then();
}

void SessionFlow::Advance(uint32_t slot, const Then& then) {
  const auto is_known = [this, slot] {
    return calls_[slot].others == 0 && session_.Next(slot).has_value();
  };
  Await(is_known, [this, slot, then] {
    const WorkerCore::Action action = *session_.Next(slot);
    if (const auto* pull = std::get_if<WorkerCore::PullShards>(&action)) {
      if (has_free_lanes_ && !calls_[slot].follows) {
        return Await([this] { return FollowNewest(); },
                     [this, slot, then] {
                       if (absl::Status taken = TakeNewest(slot); !taken.ok()) return Fail(taken);
                       Advance(slot, then);
                     });
      }
      PullFrom(slot, pull->pulls);
    } else if (const auto* excuse = std::get_if<WorkerCore::ExcuseShards>(&action)) {
      PushNothing(slot, excuse->shards, true);
    } else if (const auto* release = std::get_if<WorkerCore::ReleaseShards>(&action)) {
      PushNothing(slot, release->shards, false);
    } else {
      return then(action);
    }
    Advance(slot, then);
  });
}

bool SessionFlow::IsWanted(const WorkerCore::Action& action) const {
  const auto* compute = std::get_if<WorkerCore::ComputeBatches>(&action);
  return compute != nullptr && compute->batches == calls_[turn_].batches;
}

void SessionFlow::AwaitUnit(uint32_t settled) {
  // The pushes in flight may be all the work that is left, so the coordinator has to hear that they
  // are done.
  if (settled < calls_.size()) {
    return Advance(settled, [this, settled](const auto&) { AwaitUnit(settled + 1); });
  }
  NoteProgress();
  is_awaiting_unit_ = true;
  Ask(session_.wish());
  HeedNews();
}

bool SessionFlow::HeedNews() {
  const std::optional<WorkNews> news = TakeNews();
  if (!news.has_value()) return false;
  is_awaiting_unit_ = false;
  Heed(*news, [this] { TakeTurn(); });
  return true;
}

void SessionFlow::OnNewsCame(const absl::Status& status) {
  if (!status.ok()) return Fail(status);
  if (is_awaiting_unit_ && !HeedNews() && has_free_lanes_) RestNewest();
}

void SessionFlow::Prefetch(const std::function<void()>& then) {
  if (const WorkWish wish = session_.wish(); wish.batches > 0) Ask(wish);
  const std::optional<WorkNews> news = TakeNews();
  news.has_value() ? Heed(*news, then) : then();
}

void SessionFlow::Heed(const WorkNews& news, const std::function<void()>& then) {
  // No answer of an earlier stage may come after the worker has entered the next.
  const auto* next = std::get_if<NextStage>(&news);
  const bool has_to_settle = next != nullptr && !core().GoesOnIn(next->stage);
  const auto is_settled = [this, has_to_settle] {
    return !has_to_settle || std::ranges::all_of(calls_, [](const Calls& calls) {
      return calls.others + calls.pushes == 0;
    });
  };
  Await(is_settled, [this, news, then] {
    turns_.OnNews(news);
    session_.OnNews(news);
    NoteProgress();
    then();
  });
}

}  // namespace slipstream
