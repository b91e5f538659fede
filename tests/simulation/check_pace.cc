#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tests/simulation/checkers.h"

namespace slipstream {
namespace {

/// The clocks that one shard has heard of.
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
  }

  void OnAsked(const WeightsAsked& asked) {
    const auto found = workers_.find(asked.trainer.incarnation);
    if (found == workers_.end() || asked.sequence != Next(found->second.answered)) return;
    Enter(found->second, asked.clock);
  }

  /// `is_taken`: the push was not refused. REQUIRES: if so, for the first time.
  void OnPush(const PushDecided& decided, bool is_taken) {
    const auto found = workers_.find(decided.push.incarnation);
    if (found == workers_.end()) return;
    Worker& worker = found->second;
    if (decided.push.sequence != Next(worker.answered)) return;
    if (is_taken) worker.answered = decided.push.sequence;
    if (decided.rests) {
      worker.clock_in_pace.reset();
    } else if (decided.tells_of_work) {
      Enter(worker, decided.clock);
    }
  }

  void OnServed(const WeightsServed& served) {
    if (is_over_ || !served.trainer.has_value()) return;
    const auto found = workers_.find(served.trainer->incarnation);
    if (found == workers_.end() || served.sequence != Next(found->second.answered)) return;
    const std::optional<uint64_t> own = found->second.clock_in_pace;
    if (!own.has_value() || *own <= *Slowest() + slack_) return;
    findings_.Add("shard {}: worker {} goes on at clock {}, and the slowest is at {}", shard_,
                  Value(served.trainer->worker), *own, *Slowest());
  }

 private:
  struct Worker {
    Sequence answered{};
    uint64_t clock = 0;
    std::optional<uint64_t> clock_in_pace;  // Nothing while it rests.
  };

  std::optional<uint64_t> Slowest() const {
    std::optional<uint64_t> slowest;
    for (const auto& [incarnation, worker] : workers_) {
      if (!worker.clock_in_pace.has_value()) continue;
      slowest = std::min(slowest.value_or(*worker.clock_in_pace), *worker.clock_in_pace);
    }
    return slowest;
  }

  void Enter(Worker& worker, WorkerClock named) {
    uint64_t clock = std::max(worker.clock, Value(named));
    if (!worker.clock_in_pace.has_value()) clock = std::max(clock, Slowest().value_or(0));
    worker.clock = clock;
    worker.clock_in_pace = clock;
  }

  const uint64_t slack_;
  const size_t shard_;
  Findings& findings_;
  std::map<Incarnation, Worker> workers_;
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
