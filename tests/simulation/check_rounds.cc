#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/simulation/checkers.h"

namespace slipstream {
namespace {

bool HasJoined(const PushDecided& decided) {
  return decided.reply.outcome == PushOutcome::kApplied ||
         decided.reply.outcome == PushOutcome::kBuffered;
}

/// The rounds of one shard, under a policy that counts gradients.
class CountedRounds {
 public:
  CountedRounds(const Scenario& scenario, size_t shard, Findings& findings)
      : scenario_(scenario), shard_(shard), findings_(findings) {}

  void OnJoined() {
    ++gradients_;
    NoteDue();
  }
  void OnOrders(const OrdersTaken& orders) {
    policy_ = scenario_.PolicyOf(orders.stage);
    members_ = orders.view.members.size();
    is_draining_ = orders.phase >= Phase::kDraining;
    NoteDue();
  }
  void OnUpdate(Version to) {
    if (!IsDue()) {
      findings_.Add("shard {}: version {} closes with {} gradients of {} members", shard_,
                    Value(to), gradients_, members_);
    }
    gradients_ = 0;
    was_due_ = false;
  }

  /// The open round is lost.
  void OnLost() {
    gradients_ = 0;
    was_due_ = false;
  }

  /// Expects that no round is due: nothing else may happen on this shard between the last gradient
  /// of a round and its update. A guard that blocks may hold rounds back.
  void ExpectNotDue() {
    if (!IsDue() || scenario_.blocks()) return;
    findings_.Add("shard {}: a round of {} gradients and {} members stays open", shard_, gradients_,
                  members_);
    gradients_ = 0;
  }

 private:
  /// A round that a guard holds back stays due, even if more members join.
  void NoteDue() { was_due_ = was_due_ || (scenario_.blocks() && IsDue()); }

  bool IsDue() const {
    if (gradients_ == 0) return false;
    if (was_due_) return true;
    const PolicyKind policy = policy_.policy;
    if (is_draining_ || policy == PolicyKind::kAsync || policy == PolicyKind::kSsp ||
        policy == PolicyKind::kHogwild)
      return true;
    return gradients_ >= policy_.round_size(static_cast<uint32_t>(members_));
  }

  const Scenario& scenario_;
  const size_t shard_;
  Findings& findings_;
  ConsistencySpec policy_;
  size_t gradients_ = 0;
  size_t members_ = 0;
  bool was_due_ = false;
  bool is_draining_ = false;
};

/// The rounds of one shard, under a policy with rounds of members.
class MemberRounds {
 public:
  MemberRounds(const Scenario& scenario, size_t shard, Findings& findings)
      : scenario_(scenario), shard_(shard), findings_(findings) {}

  void OnJoined(const PushMade& made) {
    if (made.base != decided_) {
      findings_.Add("{}: of version {} in the round of version {}", Text(made.push),
                    Value(made.base), Value(decided_));
    }
    if (!heard_.insert(made.push.worker).second) {
      findings_.Add("{}: the second of its worker in one round", Text(made.push));
    }
  }
  void OnOrders(const OrdersTaken& orders) {
    view_ = orders.view;
    spare_ = scenario_.SpareOf(orders.stage);
    if (std::exchange(stage_, orders.stage) == orders.stage) return;
    heard_.clear();
    excused_.clear();
  }

  /// A worker that is further on other shards has no gradient for this shard's earlier rounds.
  void OnAsked(const WeightsAsked& asked) {
    if (asked.asked > GenerationVersion{generation_, decided_})
      excused_.insert(asked.trainer.worker);
  }
  void OnServed(const WeightsServed& served) {
    if (served.trainer.has_value()) {
      at_work_.insert(served.trainer->incarnation);
    }
  }

  void OnSaved(const SavedVersion& saved) { at_work_when_saved_[saved] = at_work_; }

  /// The open round is lost, and a member that began to work since then may begin again.
  void OnReturned(const ShardReturned& returned) {
    generation_ = returned.generation;
    decided_ = returned.from.version;
    stage_ = returned.from.stage;
    at_work_ = at_work_when_saved_[returned.from];
    OnLost();
  }
  void OnLost() {
    heard_.clear();
    excused_.clear();
  }

  /// A member that was given weights to train on is expected in every round from then on.
  void OnUpdate(Version to) {
    if (heard_.empty() && excused_.empty())
      findings_.Add("shard {}: version {} of nobody", shard_, Value(to));
    uint32_t missing = 0;
    for (const Member& member : view_.members) {
      const bool owes = member.founding || at_work_.contains(member.incarnation);
      if (!owes || heard_.contains(member.worker) || excused_.contains(member.worker)) continue;
      if (++missing <= spare_) continue;
      findings_.Add("shard {}: version {} was made without worker {}, who was at work for it",
                    shard_, Value(to), Value(member.worker));
    }
    decided_ = to;
    heard_.clear();
    excused_.clear();
  }

 private:
  const Scenario& scenario_;
  const size_t shard_;
  Findings& findings_;
  uint32_t stage_ = 0;
  uint32_t spare_ = 0;
  Generation generation_{};
  Version decided_{};
  std::set<WorkerId> heard_;
  std::set<WorkerId> excused_;
  View view_;
  std::set<Incarnation> at_work_;
  std::map<SavedVersion, std::set<Incarnation>> at_work_when_saved_;
};

/// The rounds of one shard, stage by stage.
class ShardRounds {
 public:
  ShardRounds(const Scenario& scenario, size_t shard, Findings& findings)
      : scenario_(scenario),
        counted_(scenario, shard, findings),
        of_members_(scenario, shard, findings) {}

  void OnUpdate(Version to) {
    if (has_rounds_) {
      of_members_.OnUpdate(to);
    } else {
      counted_.OnUpdate(to);
    }
  }

  void OnDecided(const PushDecided& decided, const PushMade& made) {
    // The parts of one push join together, though fewer may have been enough.
    if (!has_rounds_ && !decided.is_later_part) counted_.ExpectNotDue();
    if (!HasJoined(decided)) return;
    if (has_rounds_) {
      of_members_.OnJoined(made);
    } else if (made.slot.has_value()) {
      counted_.OnJoined();
    }
  }

  void OnOrders(const OrdersTaken& orders) {
    if (!has_rounds_) counted_.ExpectNotDue();
    has_rounds_ = scenario_.HasRounds(orders.stage);
    if (has_rounds_) {
      of_members_.OnOrders(orders);
    } else {
      counted_.OnOrders(orders);
    }
  }

  void OnAsked(const WeightsAsked& asked) { of_members_.OnAsked(asked); }
  void OnServed(const WeightsServed& served) { of_members_.OnServed(served); }

  void OnSaved(const SavedVersion& saved) { of_members_.OnSaved(saved); }
  void OnKilled() {
    counted_.OnLost();
    of_members_.OnLost();
  }
  void OnReturned(const ShardReturned& returned) {
    counted_.OnLost();
    of_members_.OnReturned(returned);
  }

  void OnEnd() {
    if (!has_rounds_) counted_.ExpectNotDue();
  }

 private:
  const Scenario& scenario_;
  bool has_rounds_ = false;
  CountedRounds counted_;
  MemberRounds of_members_;
};

}  // namespace

void CheckRounds(const Scenario& scenario, const History& history, const Evidence& evidence,
                 Findings& findings) {
  std::vector<ShardRounds> shards;
  for (size_t i = 0; i < history.ends.size(); ++i) shards.emplace_back(scenario, i, findings);
  for (const Event& event : history.events) {
    if (const auto* update = std::get_if<UpdateOrdered>(&event)) {
      shards[Value(update->shard)].OnUpdate(update->to);
    } else if (const auto* decided = std::get_if<PushDecided>(&event)) {
      shards[Value(decided->push.shard)].OnDecided(*decided,
                                                   evidence.pushes.at(decided->push).made);
    } else if (const auto* orders = std::get_if<OrdersTaken>(&event)) {
      shards[Value(orders->shard)].OnOrders(*orders);
    } else if (const auto* asked = std::get_if<WeightsAsked>(&event)) {
      shards[Value(asked->shard)].OnAsked(*asked);
    } else if (const auto* served = std::get_if<WeightsServed>(&event)) {
      shards[Value(served->shard)].OnServed(*served);
    } else if (const auto* save = std::get_if<SaveBegun>(&event)) {
      shards[Value(save->shard)].OnSaved(save->saved);
    } else if (const auto* killed = std::get_if<ServerKilled>(&event)) {
      shards[Value(killed->shard)].OnKilled();
    } else if (const auto* returned = std::get_if<ShardReturned>(&event)) {
      shards[Value(returned->shard)].OnReturned(*returned);
    }
  }
  for (ShardRounds& shard : shards) shard.OnEnd();
}

}  // namespace slipstream
