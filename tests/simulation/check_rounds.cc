#include <algorithm>
#include <set>
#include <vector>

#include "tests/simulation/checkers.h"

namespace slipstream {
namespace {

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
    const PolicyKind policy = scenario_.run.consistency.policy;
    if (is_draining_ || policy == PolicyKind::kAsync || policy == PolicyKind::kSsp) return true;
    return gradients_ >= scenario_.run.consistency.round_size(static_cast<uint32_t>(members_));
  }

  const Scenario& scenario_;
  const size_t shard_;
  Findings& findings_;
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
  void OnView(const View& view) { view_ = view; }

  /// A worker that is further on other shards has no gradient for this shard's earlier rounds.
  void OnAsked(const WeightsAsked& asked) {
    if (asked.asked > decided_) excused_.insert(asked.trainer.worker);
  }
  void OnServed(const WeightsServed& served) {
    if (served.trainer.has_value()) {
      at_work_.insert(served.trainer->incarnation);
    }
  }

  /// A member that was given weights to train on is expected in every round from then on.
  void OnUpdate(Version to) {
    if (heard_.empty() && excused_.empty())
      findings_.Add("shard {}: version {} of nobody", shard_, Value(to));
    uint32_t missing = 0;
    for (const Member& member : view_.members) {
      const bool owes = member.founding || at_work_.contains(member.incarnation);
      if (!owes || heard_.contains(member.worker) || excused_.contains(member.worker)) continue;
      if (++missing <= scenario_.spare()) continue;
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
  Version decided_{};
  std::set<WorkerId> heard_;
  std::set<WorkerId> excused_;
  View view_;
  std::set<Incarnation> at_work_;
};

bool HasJoined(const PushDecided& decided) {
  return decided.reply.outcome == PushOutcome::kApplied ||
         decided.reply.outcome == PushOutcome::kBuffered;
}

void CheckCounted(const Scenario& scenario, const History& history, const Evidence& evidence,
                  Findings& findings) {
  std::vector<CountedRounds> shards;
  for (size_t i = 0; i < history.ends.size(); ++i) shards.emplace_back(scenario, i, findings);
  for (const Event& event : history.events) {
    if (const auto* update = std::get_if<UpdateOrdered>(&event)) {
      shards[Value(update->shard)].OnUpdate(update->to);
    } else if (const auto* decided = std::get_if<PushDecided>(&event)) {
      shards[Value(decided->push.shard)].ExpectNotDue();
      const bool has_values = evidence.pushes.at(decided->push).made.slot.has_value();
      if (has_values && HasJoined(*decided)) shards[Value(decided->push.shard)].OnJoined();
    } else if (const auto* orders = std::get_if<OrdersTaken>(&event)) {
      shards[Value(orders->shard)].ExpectNotDue();
      shards[Value(orders->shard)].OnOrders(*orders);
    }
  }
  for (CountedRounds& shard : shards) shard.ExpectNotDue();
}

void CheckMembersRounds(const Scenario& scenario, const History& history, const Evidence& evidence,
                        Findings& findings) {
  std::vector<MemberRounds> shards;
  for (size_t i = 0; i < history.ends.size(); ++i) shards.emplace_back(scenario, i, findings);
  for (const Event& event : history.events) {
    if (const auto* update = std::get_if<UpdateOrdered>(&event)) {
      shards[Value(update->shard)].OnUpdate(update->to);
    } else if (const auto* decided = std::get_if<PushDecided>(&event)) {
      if (!HasJoined(*decided)) continue;
      shards[Value(decided->push.shard)].OnJoined(evidence.pushes.at(decided->push).made);
    } else if (const auto* orders = std::get_if<OrdersTaken>(&event)) {
      shards[Value(orders->shard)].OnView(orders->view);
    } else if (const auto* asked = std::get_if<WeightsAsked>(&event)) {
      shards[Value(asked->shard)].OnAsked(*asked);
    } else if (const auto* served = std::get_if<WeightsServed>(&event)) {
      shards[Value(served->shard)].OnServed(*served);
    }
  }
}

}  // namespace

void CheckRounds(const Scenario& scenario, const History& history, const Evidence& evidence,
                 Findings& findings) {
  if (scenario.has_rounds()) {
    CheckMembersRounds(scenario, history, evidence, findings);
  } else {
    CheckCounted(scenario, history, evidence, findings);
  }
}

}  // namespace slipstream
