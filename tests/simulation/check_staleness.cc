#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/simulation/checkers.h"
#include "tests/simulation/weighing.h"

namespace slipstream {
namespace {

// The error of a float's sum of a few terms of size one, with some room.
constexpr double kTolerance = 1e-5;

bool IsNear(double a, double b) { return std::abs(a - b) <= kTolerance; }

/// The staleness at one shard, recomputed from the weights and from the base versions that workers
/// report.
class ShardLag {
 public:
  ShardLag(const Scenario& scenario, const Evidence& evidence, size_t shard, Findings& findings)
      : scenario_(scenario),
        evidence_(evidence),
        shard_(shard),
        findings_(findings),
        weighing_(scenario) {}

  void Take(Version version, const std::vector<Entry>& entries) {
    if (entries.empty()) return;
    const uint32_t stage = evidence_.StageOf(shard_, version);
    has_rounds_ = scenario_.HasRounds(stage);
    std::vector<double> lags;
    std::vector<Version> bases;
    for (const Entry& entry : entries) {
      if (entry.push == nullptr) return;
      const PushMade& made = entry.push->made;
      if (made.base >= version) {
        findings_.Add("{}: of version {}, and in version {} already", Text(made.push),
                      Value(made.base), Value(version));
        return;
      }
      const uint64_t lag = Value(version) - 1 - Value(made.base);
      if (entry.push->taken.has_value() && entry.push->taken->staleness != lag) {
        findings_.Add("{}: staleness {} was answered, it is {}", Text(made.push),
                      entry.push->taken->staleness, lag);
      }
      CheckGuard(made, lag);
      if (histogram_.size() <= lag) histogram_.resize(lag + 1);
      ++histogram_[lag];
      lags.push_back(static_cast<double>(lag));
      all_.push_back(static_cast<double>(lag));
      bases.push_back(made.base);
    }
    std::ranges::sort(bases);
    clocks_.push_back(bases);
    CheckChanges(version, entries, weighing_.Take(stage, entries, lags));
  }

  void Compare(const ShardEnd& end) {
    if (end.histogram != histogram_) findings_.Add("shard {}: another histogram", shard_);
    if (end.gradients != all_.size()) findings_.Add("shard {}: another count", shard_);
    if (!IsNear(end.mean_staleness, MeanOf(all_))) {
      findings_.Add("shard {}: mean staleness {}, it is {}", shard_, end.mean_staleness,
                    MeanOf(all_));
    }
    if (!IsNear(end.window_mean, weighing_.WindowMean())) {
      findings_.Add("shard {}: mean of the last updates {}, it is {}", shard_, end.window_mean,
                    weighing_.WindowMean());
    }
    CompareClocks(end);
  }

 private:
  /// Checks the guard's bound. Rounds of members take no stale gradients, whatever the guard.
  void CheckGuard(const PushMade& made, uint64_t lag) {
    using Action = StalenessGuardSpec::Action;
    const StalenessGuardSpec& guard = scenario_.guard();
    const bool is_bounded = guard.action != Action::kNone && guard.action != Action::kScale;
    const uint64_t lag_max = has_rounds_ ? 0 : guard.bound;
    if ((is_bounded || has_rounds_) && lag > lag_max) {
      findings_.Add("{}: staleness {} in the weights, beyond {}", Text(made.push), lag, lag_max);
    }
  }

  /// Checks each gradient's factor, where it shows in the weights.
  void CheckChanges(Version version, const std::vector<Entry>& entries,
                    const Weighing::Factors& factors) {
    for (size_t i = 0; i < entries.size(); ++i) {
      const double expected = -factors.rate * factors.shares[i];
      if (!evidence_.is_shown || IsNear(entries[i].change, expected)) continue;
      findings_.Add("{}: counts {} in version {}, expected {}", Text(entries[i].push->made.push),
                    entries[i].change, Value(version), expected);
    }
  }

  void CompareClocks(const ShardEnd& end) {
    if (end.clocks.size() > clocks_.size()) {
      return findings_.Add("shard {}: more vector clocks than updates", shard_);
    }
    const size_t first = clocks_.size() - end.clocks.size();
    for (size_t i = 0; i < end.clocks.size(); ++i) {
      std::vector<Version> clock = end.clocks[i];
      std::ranges::sort(clock);
      if (clock != clocks_[first + i] ||
          !IsNear(end.clock_means[i], weighing_.means()[first + i])) {
        findings_.Add("shard {}: another vector clock, {} before the last", shard_,
                      end.clocks.size() - 1 - i);
      }
    }
  }

  const Scenario& scenario_;
  const Evidence& evidence_;
  const size_t shard_;
  Findings& findings_;
  bool has_rounds_ = false;  // In the stage of the version at hand.
  std::vector<uint64_t> histogram_;
  std::vector<double> all_;
  std::vector<std::vector<Version>> clocks_;
  Weighing weighing_;
};

}  // namespace

void CheckStaleness(const Scenario& scenario, const History& history, const Evidence& evidence,
                    Findings& findings) {
  for (size_t shard = 0; shard < evidence.entries.size(); ++shard) {
    ShardLag lag(scenario, evidence, shard, findings);
    for (const auto& [version, entries] : evidence.entries[shard]) lag.Take(version, entries);
    if (history.ends[shard].has_weights) lag.Compare(history.ends[shard]);
  }
}

void CheckFreeLanes(const History& history, Findings& findings) {
  std::map<std::pair<Incarnation, uint32_t>, std::vector<GenerationVersion>> newest;
  for (const Event& event : history.events) {
    if (const auto* begun = std::get_if<BatchBegun>(&event)) {
      newest[{begun->worker.incarnation, begun->pipeline_slot}] = begun->newest;
    } else if (const auto* made = std::get_if<PushMade>(&event)) {
      const auto found = newest.find({made->push.incarnation, made->pipeline_slot});
      if (found == newest.end()) continue;
      const GenerationVersion came = found->second[Value(made->push.shard)];
      if (GenerationVersion{made->push.generation, made->base} >= came) continue;
      findings.Add("{}: of version {}, though version {} of generation {} had come",
                   Text(made->push), Value(made->base), Value(came.version),
                   Value(came.generation));
    }
  }
}

namespace {

/// The clocks that one shard has been told of.
class Pace {
 public:
  Pace(const Scenario& scenario, size_t shard, Findings& findings)
      : scenario_(scenario), shard_(shard), findings_(findings) {
    EnterStage(0);
  }

  void OnOrders(const OrdersTaken& orders) {
    while (stage_ < orders.stage) EnterStage(stage_ + 1);
    is_over_ = is_over_ || orders.phase >= Phase::kDraining;
    std::map<Incarnation, Worker> members;
    for (const Member& member : orders.view.members) {
      members[member.incarnation] = workers_[member.incarnation];
    }
    workers_ = std::move(members);
    NotePace();
    LetGoOn();
  }

  /// The shard goes on from the state that this one is a copy of, in a new generation: sequences
  /// begin anew, no call waits, and nobody counts as at work.
  void OnReturned(Generation generation) {
    generation_ = generation;
    for (auto& [incarnation, worker] : workers_) {
      worker.answered = {};
      worker.clock_in_pace.reset();
      worker.waits.clear();
    }
  }

  void OnAsked(const WeightsAsked& asked) {
    const auto found = workers_.find(asked.trainer.incarnation);
    if (found == workers_.end() || asked.sequence != Next(found->second.answered)) return;
    Worker& worker = found->second;
    // After a return, a member is in the pace from its first call of the new generation on.
    if (asked.asked.generation == generation_) Enter(worker, asked.clock);
    Wait(worker, asked.call);
    LetGoOn();
  }

  /// `is_taken` says that the push was not refused. REQUIRES: each push is taken at most once.
  void OnPush(const PushDecided& decided, bool is_taken) {
    const auto found = workers_.find(decided.push.incarnation);
    if (found == workers_.end()) return;
    Worker& worker = found->second;
    if (decided.push.sequence != Next(worker.answered)) return;
    if (is_taken) {
      worker.answered = decided.push.sequence;
      worker.waits.clear();
    }
    const bool joins = decided.reply.outcome == PushOutcome::kApplied ||
                       decided.reply.outcome == PushOutcome::kBuffered;
    // Nobody waits for a gradient that was on its way when a change began.
    if (joins && decided.has_values && worker.clock_in_pace.has_value()) {
      worker.made[Value(decided.clock)] = decided.reply.version;
    }
    if (is_taken && decided.rests) {
      worker.clock_in_pace.reset();
      NotePace();
    } else if (decided.has_values || decided.wants_weights || worker.clock_in_pace.has_value()) {
      Enter(worker, decided.clock);
    }
    if (is_taken && decided.wants_weights) Wait(worker, decided.call);
    LetGoOn();
  }

  /// A push that was taken before comes again.
  void OnRepeated(const PushDecided& decided) {
    const auto found = workers_.find(decided.push.incarnation);
    if (found == workers_.end() || decided.push.generation != generation_) return;
    Worker& worker = found->second;
    if (decided.push.sequence != worker.answered || !decided.wants_weights) return;
    Wait(worker, decided.call);
    LetGoOn();
  }

  void OnServed(const WeightsServed& served) {
    if (is_over_ || !keeps_pace_ || !served.trainer.has_value()) return;
    const auto found = workers_.find(served.trainer->incarnation);
    if (found == workers_.end()) return;
    // Calls from before a change, or before a later push, are answered as they were to be then.
    const auto waiting = found->second.waits.find(served.call);
    if (waiting == found->second.waits.end()) return;
    const Waiting& wait = waiting->second;
    if (!wait.may_go_on) {
      findings_.Add("shard {}: worker {} goes on at clock {}, and the slowest is at {}", shard_,
                    Value(served.trainer->worker), wait.clock + slack_, Slowest().value_or(0));
    } else if (served.version.version < wait.has_to_see) {
      findings_.Add("shard {}: worker {} goes on from version {} without {}", shard_,
                    Value(served.trainer->worker), Value(served.version.version),
                    Value(wait.has_to_see));
    }
  }

 private:
  /// A call that waits: the clock that the slowest worker must reach before it is answered, whether
  /// it has, and the version that then contains all pushes up to that clock.
  struct Waiting {
    uint64_t clock = 0;
    bool may_go_on = false;
    Version has_to_see{};
  };

  struct Worker {
    Sequence answered{};
    uint64_t clock = 0;
    std::optional<uint64_t> clock_in_pace;  // Null while it rests.
    std::map<uint64_t, Version> made;       // Versions made by its pushes, by clock.

    // By number: the calls since its last push, several if one was repeated.
    std::map<uint64_t, Waiting> waits;
  };

  /// When another policy takes over, nobody counts as at work, and no call waits. All continue at
  /// the highest clock.
  void EnterStage(uint32_t stage) {
    const ConsistencySpec policy = scenario_.PolicyOf(stage);
    stage_ = stage;
    keeps_pace_ = policy.traits().keeps_pace;
    slack_ = static_cast<uint64_t>(policy.parameters["slack"]);
    is_over_ = false;
    for (auto& [incarnation, worker] : workers_) {
      if (keeps_pace_) pace_ = std::max(pace_, worker.clock);
      worker.clock_in_pace.reset();
      worker.waits.clear();
    }
  }

  /// Shards note the pace only under policies that keep one.
  void NotePace() {
    if (keeps_pace_) pace_ = std::max(pace_, Slowest().value_or(0));
  }

  std::optional<uint64_t> Slowest() const {
    std::optional<uint64_t> slowest;
    for (const auto& [incarnation, worker] : workers_) {
      if (!worker.clock_in_pace.has_value()) continue;
      slowest = std::min(slowest.value_or(*worker.clock_in_pace), *worker.clock_in_pace);
    }
    return slowest;
  }

  void Wait(Worker& worker, uint64_t call) const {
    worker.waits[call] = {.clock = worker.clock - std::min(worker.clock, slack_)};
  }

  void LetGoOn() {
    const std::optional<uint64_t> slowest = Slowest();
    for (auto& [incarnation, worker] : workers_) {
      for (auto& [call, wait] : worker.waits) {
        if (wait.may_go_on || (slowest.has_value() && *slowest < wait.clock)) continue;
        wait.may_go_on = true;
        wait.has_to_see = NewestUpTo(wait.clock);
      }
    }
  }

  /// Returns the newest version that a push of a clock up to this one has made.
  Version NewestUpTo(uint64_t last) const {
    Version newest{};
    for (const auto& [incarnation, worker] : workers_) {
      for (const auto& [clock, version] : worker.made) {
        if (clock <= last) newest = std::max(newest, version);
      }
    }
    return newest;
  }

  void Enter(Worker& worker, WorkerClock named) {
    uint64_t clock = std::max(worker.clock, Value(named));
    if (!worker.clock_in_pace.has_value()) clock = std::max(clock, pace_);
    worker.clock = clock;
    worker.clock_in_pace = clock;
    NotePace();
  }

  const Scenario& scenario_;
  const size_t shard_;
  Findings& findings_;
  Generation generation_{};
  uint32_t stage_ = 0;
  bool keeps_pace_ = false;
  uint64_t slack_ = 0;
  std::map<Incarnation, Worker> workers_;
  uint64_t pace_ = 0;  // The highest clock of the slowest worker at work so far.
  bool is_over_ = false;
};

}  // namespace

void CheckPace(const Scenario& scenario, const History& history, Findings& findings) {
  std::vector<std::unique_ptr<Pace>> shards;
  for (uint32_t i = 0; i < scenario.shards; ++i) {
    shards.push_back(std::make_unique<Pace>(scenario, i, findings));
  }
  std::map<std::pair<ShardId, SavedVersion>, Pace> saved;
  for (const Event& event : history.events) {
    if (const auto* orders = std::get_if<OrdersTaken>(&event)) {
      shards[Value(orders->shard)]->OnOrders(*orders);
    } else if (const auto* save = std::get_if<SaveBegun>(&event)) {
      const std::pair key(save->shard, save->saved);
      saved.erase(key);
      saved.emplace(key, *shards[Value(save->shard)]);
    } else if (const auto* returned = std::get_if<ShardReturned>(&event)) {
      std::unique_ptr<Pace>& pace = shards[Value(returned->shard)];
      pace = std::make_unique<Pace>(saved.at({returned->shard, returned->from}));
      pace->OnReturned(returned->generation);
    } else if (const auto* asked = std::get_if<WeightsAsked>(&event)) {
      shards[Value(asked->shard)]->OnAsked(*asked);
    } else if (const auto* served = std::get_if<WeightsServed>(&event)) {
      shards[Value(served->shard)]->OnServed(*served);
    } else if (const auto* decided = std::get_if<PushDecided>(&event)) {
      const PushOutcome outcome = decided->reply.outcome;
      if (decided->push.generation != decided->reply.generation) continue;
      const bool is_too_stale = outcome == PushOutcome::kTooStale;
      if (IsRefusal(outcome) && !is_too_stale) continue;
      Pace& pace = *shards[Value(decided->push.shard)];
      if (outcome == PushOutcome::kDuplicate) {
        pace.OnRepeated(*decided);
      } else {
        pace.OnPush(*decided, !is_too_stale);
      }
    }
  }
}

}  // namespace slipstream
