#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tests/simulation/checkers.h"

namespace slipstream {
namespace {

/// The clocks that one shard has been told of.
class Pace {
 public:
  Pace(uint64_t slack, size_t shard, Findings& findings)
      : slack_(slack), shard_(shard), findings_(findings) {}

  void OnOrders(const OrdersTaken& orders) {
    is_over_ = is_over_ || orders.phase >= Phase::kDraining;
    std::map<Incarnation, Worker> members;
    for (const Member& member : orders.view.members) {
      members[member.incarnation] = workers_[member.incarnation];
    }
    workers_ = std::move(members);
    pace_ = std::max(pace_, Slowest().value_or(0));
    LetGoOn();
  }

  void OnAsked(const WeightsAsked& asked) {
    const auto found = workers_.find(asked.trainer.incarnation);
    if (found == workers_.end() || asked.sequence != Next(found->second.answered)) return;
    Enter(found->second, asked.clock);
    Wait(found->second);
    LetGoOn();
  }

  /// `is_taken` says that the push was not refused. REQUIRES: each push is taken at most once.
  void OnPush(const PushDecided& decided, bool is_taken) {
    const auto found = workers_.find(decided.push.incarnation);
    if (found == workers_.end()) return;
    Worker& worker = found->second;
    if (decided.push.sequence != Next(worker.answered)) return;
    if (is_taken) worker.answered = decided.push.sequence;
    const bool joins = decided.reply.outcome == PushOutcome::kApplied ||
                       decided.reply.outcome == PushOutcome::kBuffered;
    if (joins && decided.has_values) {
      worker.made[Value(decided.clock)] = decided.reply.version;
    }
    if (is_taken && decided.rests) {
      worker.clock_in_pace.reset();
      pace_ = std::max(pace_, Slowest().value_or(0));
    } else if (decided.has_values || decided.wants_weights || worker.clock_in_pace.has_value()) {
      Enter(worker, decided.clock);
    }
    if (is_taken && decided.wants_weights) Wait(worker);
    LetGoOn();
  }

  void OnServed(const WeightsServed& served) {
    if (is_over_ || !served.trainer.has_value()) return;
    const auto found = workers_.find(served.trainer->incarnation);
    if (found == workers_.end() || served.sequence != Next(found->second.answered)) return;
    const Worker& worker = found->second;
    if (!worker.waits_for.has_value()) return;
    if (!worker.may_go_on) {
      findings_.Add("shard {}: worker {} goes on at clock {}, and the slowest is at {}", shard_,
                    Value(served.trainer->worker), *worker.waits_for + slack_,
                    Slowest().value_or(0));
    } else if (served.version < worker.has_to_see) {
      findings_.Add("shard {}: worker {} goes on from version {} without {}", shard_,
                    Value(served.trainer->worker), Value(served.version), Value(worker.has_to_see));
    }
  }

 private:
  struct Worker {
    Sequence answered{};
    uint64_t clock = 0;
    std::optional<uint64_t> clock_in_pace;  // Null while it rests.
    std::map<uint64_t, Version> made;       // Versions made by its pushes, by clock.

    // The clock that the slowest worker must reach before this worker's call is answered; whether
    // it has; and the version that then contains all pushes up to that clock.
    std::optional<uint64_t> waits_for;
    bool may_go_on = false;
    Version has_to_see{};
  };

  std::optional<uint64_t> Slowest() const {
    std::optional<uint64_t> slowest;
    for (const auto& [incarnation, worker] : workers_) {
      if (!worker.clock_in_pace.has_value()) continue;
      slowest = std::min(slowest.value_or(*worker.clock_in_pace), *worker.clock_in_pace);
    }
    return slowest;
  }

  /// The worker's call begins or is repeated.
  void Wait(Worker& worker) {
    worker.waits_for = worker.clock - std::min(worker.clock, slack_);
    worker.may_go_on = false;
  }

  void LetGoOn() {
    const std::optional<uint64_t> slowest = Slowest();
    for (auto& [incarnation, worker] : workers_) {
      if (!worker.waits_for.has_value() || worker.may_go_on) continue;
      if (slowest.has_value() && *slowest < *worker.waits_for) continue;
      worker.may_go_on = true;
      worker.has_to_see = {};
      for (const auto& [of, other] : workers_) {
        for (const auto& [clock, version] : other.made) {
          if (clock <= *worker.waits_for) worker.has_to_see = std::max(worker.has_to_see, version);
        }
      }
    }
  }

  void Enter(Worker& worker, WorkerClock named) {
    uint64_t clock = std::max(worker.clock, Value(named));
    if (!worker.clock_in_pace.has_value()) clock = std::max(clock, pace_);
    worker.clock = clock;
    worker.clock_in_pace = clock;
    pace_ = std::max(pace_, *Slowest());
  }

  const uint64_t slack_;
  const size_t shard_;
  Findings& findings_;
  std::map<Incarnation, Worker> workers_;
  uint64_t pace_ = 0;  // The highest clock of the slowest worker at work so far.
  bool is_over_ = false;
};

}  // namespace

void CheckPace(const Scenario& scenario, const History& history, Findings& findings) {
  const ConsistencySpec& consistency = scenario.run.consistency;
  if (consistency.policy != PolicyKind::kSsp) return;
  std::vector<Pace> shards;
  for (uint32_t i = 0; i < scenario.shards; ++i) {
    shards.emplace_back(static_cast<uint64_t>(consistency.parameters["slack"]), i, findings);
  }
  for (const Event& event : history.events) {
    if (const auto* orders = std::get_if<OrdersTaken>(&event)) {
      shards[Value(orders->shard)].OnOrders(*orders);
    } else if (const auto* asked = std::get_if<WeightsAsked>(&event)) {
      shards[Value(asked->shard)].OnAsked(*asked);
    } else if (const auto* served = std::get_if<WeightsServed>(&event)) {
      shards[Value(served->shard)].OnServed(*served);
    } else if (const auto* decided = std::get_if<PushDecided>(&event)) {
      const PushOutcome outcome = decided->reply.outcome;
      const bool is_too_stale = outcome == PushOutcome::kTooStale;
      if (outcome == PushOutcome::kDuplicate || (IsRefusal(outcome) && !is_too_stale)) continue;
      shards[Value(decided->push.shard)].OnPush(*decided, !is_too_stale);
    }
  }
}

}  // namespace slipstream
