#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "tests/simulation/checkers.h"

namespace slipstream {
namespace {

bool IsAcknowledged(const PushReply& reply) {
  return reply.outcome == PushOutcome::kApplied || reply.outcome == PushOutcome::kBuffered;
}

void CheckAnswers(const PushKey& key, const PushEvidence& push, Findings& findings) {
  bool is_first = true;
  for (const PushReply& reply : push.decisions) {
    if (IsRefusal(reply.outcome)) continue;
    if (std::exchange(is_first, false)) {
      if (reply.outcome == PushOutcome::kDuplicate) {
        findings.Add("{}: a repetition, but of what?", Text(key));
      }
    } else if (reply.outcome != PushOutcome::kDuplicate) {
      findings.Add("{}: taken twice, the second time as {}", Text(key), Name(reply.outcome));
    } else if (reply.version != push.taken->version || reply.staleness != push.taken->staleness) {
      findings.Add("{}: a repetition was answered otherwise than the first", Text(key));
    }
  }
}

}  // namespace

void CheckPushes(const Evidence& evidence, Findings& findings) {
  std::map<PushKey, Version> entered;
  for (size_t shard = 0; shard < evidence.entries.size(); ++shard) {
    for (const auto& [version, entries] : evidence.entries[shard]) {
      for (const Entry& entry : entries) {
        if (entry.push == nullptr) {
          findings.Add("shard {} version {}: position {} changed, of which nobody sent a gradient",
                       shard, Value(version), entry.slot);
          continue;
        }
        const PushKey& key = entry.push->made.push;
        const auto [first, is_new] = entered.emplace(key, version);
        if (!is_new) {
          findings.Add("{}: in version {} and again in version {}", Text(key), Value(first->second),
                       Value(version));
        }
      }
    }
  }
  for (const auto& [key, push] : evidence.pushes) {
    CheckAnswers(key, push, findings);
    if (!push.made.slot.has_value()) continue;
    const auto found = entered.find(key);
    const bool is_due = push.taken.has_value() && IsAcknowledged(*push.taken) &&
                        evidence.Survives(key.shard, {key.generation, push.taken->version});
    if (is_due && found == entered.end()) {
      findings.Add("{}: acknowledged as {}, but not in the weights", Text(key),
                   Name(push.taken->outcome));
    } else if (is_due && found->second != push.taken->version) {
      findings.Add("{}: said to be in version {}, is in version {}", Text(key),
                   Value(push.taken->version), Value(found->second));
    } else if (!is_due && found != entered.end()) {
      findings.Add("{}: in version {}, though never acknowledged, or lost", Text(key),
                   Value(found->second));
    }
  }
}

void CheckPulls(const History& history, Findings& findings) {
  std::map<std::tuple<Incarnation, ShardId, Generation>, uint64_t> taken;
  for (const Event& event : history.events) {
    if (const auto* answered = std::get_if<PushAnswered>(&event)) {
      const PushKey& push = answered->push;
      if (IsRefusal(answered->reply.outcome)) continue;
      ++taken[{push.incarnation, push.shard, answered->reply.generation}];
    } else if (const auto* made = std::get_if<PullMade>(&event)) {
      const uint64_t next = taken[{made->worker.incarnation, made->shard, made->generation}] + 1;
      if (Value(made->sequence) == next) continue;
      findings.Add("shard {} worker {}#{}: a pull of generation {} before push {}, which is {}",
                   Value(made->shard), Value(made->worker.worker), Value(made->worker.incarnation),
                   Value(made->generation), Value(made->sequence), next);
    }
  }
}

namespace {

/// A worker's use of the aggregator before one shard.
struct Use {
  absl::Time from = absl::InfinitePast();  // When it may be used again.
  absl::Duration pause = absl::Seconds(1);
  int not_combined = 0;
  std::optional<PushKey> refused;  // Which has to go to the shard.

  void Fail(absl::Time now) {
    from = now + pause;
    pause = std::min(pause * 2, absl::Seconds(30));
  }
};

}  // namespace

void CheckAggregators(const Scenario& scenario, const History& history, Findings& findings) {
  const ClusterSpec& cluster = scenario.run.cluster;
  if (cluster.tree.fanout == 0) return;
  std::map<std::pair<Incarnation, ShardId>, Use> uses;
  for (const Event& event : history.events) {
    if (const auto* made = std::get_if<PushMade>(&event)) {
      // A push that had no effect leaves its name to the next one.
      uses[{made->push.incarnation, made->push.shard}].refused.reset();
    } else if (const auto* tried = std::get_if<PushTried>(&event)) {
      if (!tried->has_values || Value(tried->push.worker) >= cluster.workers) continue;
      const Use& use = uses[{tried->push.incarnation, tried->push.shard}];
      const bool is_due = tried->time >= use.from && use.refused != tried->push;
      if (is_due == tried->is_to_aggregator) continue;
      findings.Add("{}: sent to the {}", Text(tried->push), is_due ? "shard" : "aggregator");
    } else if (const auto* answered = std::get_if<AggregatorAnswered>(&event)) {
      Use& use = uses[{answered->push.incarnation, answered->push.shard}];
      const bool is_taken = answered->outcome.has_value() && !IsRefusal(*answered->outcome);
      if (is_taken) {
        use = {};
        continue;
      }
      use.refused = answered->push;
      const bool combines = answered->outcome != PushOutcome::kNotCombined;
      if (combines || ++use.not_combined >= 3) use.Fail(answered->time);
    }
  }
}

namespace {

struct Known {
  Incarnation incarnation{};
  absl::Time heard;
  bool has_left = false;
};

/// `last`: the view before; null if this is the first.
void CheckView(const Scenario& scenario, const ViewMade& made, const View* last,
               const std::map<WorkerId, Known>& workers, Findings& findings) {
  // The coordinator checks leases every 20 ms.
  const absl::Duration lease_max = scenario.run.cluster.lease + absl::Milliseconds(21);
  for (const Member& member : made.view.members) {
    const auto found = workers.find(member.worker);
    const bool is_known = found != workers.end() && found->second.incarnation == member.incarnation;
    // The place of a worker that is gone may be kept for another.
    const bool is_there =
        is_known && (scenario.waits_for_lost() ||
                     (!found->second.has_left && made.time - found->second.heard <= lease_max));
    if (!is_there) {
      findings.Add("view {} has worker {}#{}, who is not there", Value(made.view.number),
                   Value(member.worker), Value(member.incarnation));
    }
  }
  for (const auto& [id, worker] : workers) {
    const bool is_live = !worker.has_left && made.time - worker.heard <= scenario.run.cluster.lease;
    if (is_live && made.view.Find(id) == nullptr) {
      findings.Add("view {} lacks worker {}#{}, who is there", Value(made.view.number), Value(id),
                   Value(worker.incarnation));
    }
    const Member* const before = last == nullptr ? nullptr : last->Find(id);
    const bool is_lost = before != nullptr && before->incarnation == worker.incarnation &&
                         !worker.has_left && made.view.Find(id) == nullptr;
    // A place that was kept for another is given up later than its worker.
    const bool is_late = made.time - worker.heard > lease_max && !made.may_be_late;
    if (is_lost && !scenario.waits_for_lost() && is_late) {
      findings.Add("view {} lacks worker {}#{}, whose lease was over before",
                   Value(made.view.number), Value(id), Value(worker.incarnation));
    }
  }
}

/// `last`: the newest view; null before the first.
void RenewLeases(const Scenario& scenario, const CoordinatorReturned& returned, const View* last,
                 std::map<WorkerId, Known>& workers) {
  for (auto& [id, worker] : workers) {
    const Member* const member = last == nullptr ? nullptr : last->Find(id);
    const bool is_live = last == nullptr || scenario.waits_for_lost()
                             ? returned.killed - worker.heard <= scenario.run.cluster.lease
                             : member != nullptr && member->incarnation == worker.incarnation;
    if (is_live) worker.heard = returned.time;
  }
}

}  // namespace

void CheckMembers(const Scenario& scenario, const History& history, Findings& findings) {
  std::map<WorkerId, Known> workers;
  std::map<ViewNumber, View> views;
  for (const Event& event : history.events) {
    if (const auto* heard = std::get_if<WorkerHeard>(&event)) {
      Known& worker = workers[heard->worker.worker];
      if (heard->what == WorkerHeard::What::kRegistered) {
        worker = {heard->worker.incarnation, heard->time, false};
      } else if (heard->worker.incarnation != worker.incarnation || worker.has_left) {
        findings.Add("worker {}#{} was heard, but is fenced or gone", Value(heard->worker.worker),
                     Value(heard->worker.incarnation));
      }
      worker.heard = heard->time;
      worker.has_left = heard->what == WorkerHeard::What::kLeft;
    } else if (const auto* returned = std::get_if<CoordinatorReturned>(&event)) {
      const View* const last = views.empty() ? nullptr : &views.rbegin()->second;
      RenewLeases(scenario, *returned, last, workers);
    } else if (const auto* made = std::get_if<ViewMade>(&event)) {
      const View* const last = views.empty() ? nullptr : &views.rbegin()->second;
      CheckView(scenario, *made, last, workers, findings);
      views[made->view.number] = made->view;
    } else if (const auto* taken = std::get_if<OrdersTaken>(&event)) {
      if (Value(taken->view.number) == 0) continue;
      const auto found = views.find(taken->view.number);
      if (found == views.end() || !(found->second == taken->view)) {
        findings.Add("shard {} has another view {}", Value(taken->shard),
                     Value(taken->view.number));
      }
    }
  }
}

}  // namespace slipstream
