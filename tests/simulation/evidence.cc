#include "tests/simulation/evidence.h"

#include <algorithm>

#include "tests/simulation/gradients.h"

namespace slipstream {

Evidence::Evidence(const History& history, bool shows_gradients)
    : is_shown(shows_gradients),
      weights(history.ends.size()),
      entries(history.ends.size()),
      stage_begins(history.ends.size()) {
  std::vector<Version> newest(history.ends.size());
  for (const Event& event : history.events) {
    if (const auto* made = std::get_if<PushMade>(&event)) {
      PushEvidence& push = pushes[made->push];
      push.made = *made;
      push.arrived = nullptr;
    } else if (const auto* arrived = std::get_if<GradientArrived>(&event)) {
      // A refused push may arrive late, when its sequence belongs to another push.
      PushEvidence& push = pushes[arrived->push];
      const bool is_it = arrived->base == push.made.base && arrived->batches == push.made.batches;
      if (is_it) push.arrived = arrived->values;
    } else if (const auto* decided = std::get_if<PushDecided>(&event)) {
      PushEvidence& push = pushes[decided->push];
      push.decisions.push_back(decided->reply);
      if (decided->reply.outcome == PushOutcome::kTooStale) {
        ForEachBatch(push.made.batches,
                     [&](uint64_t batch) { too_stale.emplace(decided->push.shard, batch); });
      }
      if (!push.taken.has_value() && !IsRefusal(decided->reply.outcome)) {
        push.taken = decided->reply;
      }
    } else if (const auto* update = std::get_if<UpdateOrdered>(&event)) {
      newest[Value(update->shard)] = update->to;
    } else if (const auto* orders = std::get_if<OrdersTaken>(&event)) {
      std::vector<Version>& begins = stage_begins[Value(orders->shard)];
      begins.resize(std::max<size_t>(begins.size(), orders->stage), newest[Value(orders->shard)]);
    } else if (const auto* published = std::get_if<VersionPublished>(&event)) {
      weights[Value(published->shard)][published->version] = published->weights;
    } else if (const auto* end = std::get_if<WorkEnded>(&event)) {
      ended_early =
          end->reason == EndReason::kMaxSeconds || end->reason == EndReason::kTargetAccuracy;
    }
  }
  if (is_shown) {
    FindEntriesInWeights();
  } else {
    FindEntriesInAnswers();
  }
  FindDead(history);
}

void Evidence::FindEntriesInAnswers() {
  for (size_t shard = 0; shard < weights.size(); ++shard) {
    for (const auto& [version, after] : weights[shard]) entries[shard][version];
  }
  for (const auto& [key, push] : pushes) {
    if (!push.made.slot.has_value() || !push.taken.has_value()) continue;
    const PushOutcome outcome = push.taken->outcome;
    if (outcome != PushOutcome::kApplied && outcome != PushOutcome::kBuffered) continue;
    const auto found = entries[Value(key.shard)].find(push.taken->version);
    if (found == entries[Value(key.shard)].end()) continue;  // CheckPushes reports it.
    found->second.push_back({*push.made.slot, found->first, 0, &push});
  }
}

void Evidence::FindEntriesInWeights() {
  std::map<std::pair<ShardId, uint32_t>, const PushEvidence*> by_slot;
  for (const auto& [key, push] : pushes) {
    if (!push.made.slot.has_value()) continue;
    // A refused gradient may have used the slot before.
    const PushEvidence*& of_slot = by_slot[{key.shard, *push.made.slot}];
    if (of_slot == nullptr || push.taken.has_value()) of_slot = &push;
  }
  for (size_t shard = 0; shard < weights.size(); ++shard) {
    Values before;
    for (const auto& [version, after] : weights[shard]) {
      std::vector<Entry>& of_version = entries[shard][version];
      for (uint32_t slot = 0; before != nullptr && slot < Gradients::kSlots; ++slot) {
        const double change = double{(*after)[slot]} - double{(*before)[slot]};
        if (change == 0) continue;
        const auto found = by_slot.find({ShardId{static_cast<uint32_t>(shard)}, slot});
        of_version.push_back(
            {slot, version, change, found == by_slot.end() ? nullptr : found->second});
      }
      before = after;
    }
  }
}

void Evidence::FindDead(const History& history) {
  std::set<Incarnation> registered;
  View last;
  for (const Event& event : history.events) {
    if (const auto* heard = std::get_if<WorkerHeard>(&event)) {
      if (heard->what == WorkerHeard::What::kRegistered) {
        registered.insert(heard->worker.incarnation);
      }
    } else if (const auto* view = std::get_if<ViewMade>(&event)) {
      last = view->view;
    } else if (const auto* phase = std::get_if<PhaseMade>(&event)) {
      if (phase->phase >= Phase::kEvaluating) break;
    }
  }
  for (const Member& member : last.members) registered.erase(member.incarnation);
  died = std::move(registered);
}

std::string Text(const PushKey& push) {
  return fmt::format("shard {} worker {}#{} sequence {}", Value(push.shard), Value(push.worker),
                     Value(push.incarnation), Value(push.sequence));
}

}  // namespace slipstream
