#include "tests/simulation/evidence.h"

#include <algorithm>

#include "tests/simulation/gradients.h"

namespace slipstream {

Evidence::Evidence(const History& history, bool shows_gradients)
    : is_shown(shows_gradients),
      published(history.ends.size()),
      weights(history.ends.size()),
      entries(history.ends.size()),
      stage_begins(history.ends.size()),
      begins_(history.ends.size()),
      line_(history.ends.size()) {
  std::vector<Version> newest(history.ends.size());
  for (const Event& event : history.events) {
    if (const auto* made = std::get_if<PushMade>(&event)) {
      PushEvidence& push = pushes[made->push];
      // A push of an older generation may have the name of an earlier one, and is refused.
      if (push.taken.has_value()) continue;
      push.made = *made;
      push.arrived = nullptr;
    } else if (const auto* arrived = std::get_if<GradientArrived>(&event)) {
      // A refused push may arrive late, when its sequence belongs to another push.
      PushEvidence& push = pushes[arrived->push];
      const bool is_it = arrived->base == push.made.base && arrived->batches == push.made.batches;
      if (is_it) push.arrived = arrived->values;
    } else if (const auto* decided = std::get_if<PushDecided>(&event)) {
      OnDecided(*decided);
    } else if (const auto* update = std::get_if<UpdateOrdered>(&event)) {
      newest[Value(update->shard)] = update->to;
    } else if (const auto* orders = std::get_if<OrdersTaken>(&event)) {
      std::vector<Version>& begins = stage_begins[Value(orders->shard)];
      begins.resize(std::max<size_t>(begins.size(), orders->stage), newest[Value(orders->shard)]);
    } else if (const auto* version = std::get_if<VersionPublished>(&event)) {
      published[Value(version->shard)][{version->generation, version->version}] = version->weights;
    } else if (const auto* returned = std::get_if<ShardReturned>(&event)) {
      OnReturned(*returned, newest[Value(returned->shard)]);
    } else if (const auto* end = std::get_if<WorkEnded>(&event)) {
      ended_early =
          end->reason == EndReason::kMaxSeconds || end->reason == EndReason::kTargetAccuracy;
    }
  }
  for (size_t shard = 0; shard < weights.size(); ++shard) FindLine(shard);
  if (is_shown) {
    FindEntriesInWeights();
  } else {
    FindEntriesInAnswers();
  }
  FindDead(history);
  FindLost();
}

void Evidence::OnDecided(const PushDecided& decided) {
  PushEvidence& push = pushes[decided.push];
  const ShardId shard = decided.push.shard;
  push.decisions.push_back(decided.reply);
  if (decided.reply.outcome == PushOutcome::kTooStale) {
    const bool is_of_older_generation = decided.push.generation < decided.reply.generation;
    ForEachBatch(decided.batches, [&](uint64_t batch) {
      (is_of_older_generation ? lost : too_stale).emplace(shard, batch);
    });
  }
  if (!push.taken.has_value() && !IsRefusal(decided.reply.outcome)) push.taken = decided.reply;
}

void Evidence::OnReturned(const ShardReturned& returned, Version& newest) {
  const size_t shard = Value(returned.shard);
  const SavedVersion& from = returned.from;
  begins_[shard][returned.generation] = from;
  published[shard][{returned.generation, from.version}] = returned.weights;
  newest = from.version;
  std::vector<Version>& begins = stage_begins[shard];
  begins.resize(std::min<size_t>(begins.size(), from.stage));
}

void Evidence::FindLine(size_t shard) {
  const std::map<Generation, SavedVersion>& begins = begins_[shard];
  Generation generation = begins.empty() ? Generation{} : begins.rbegin()->first;
  Version last{~uint64_t{0}};
  while (true) {
    line_[shard][generation] = last;
    const auto begin = begins.find(generation);
    if (begin == begins.end()) break;
    generation = begin->second.generation;
    last = std::min(last, begin->second.version);
  }
  const ShardId id{static_cast<uint32_t>(shard)};
  for (const auto& [version, values] : published[shard]) {
    // The first version of a generation is the last of the generation before it.
    if (Survives(id, version)) weights[shard].emplace(version.version, values);
  }
}

bool Evidence::Survives(ShardId shard, const GenerationVersion& version) const {
  const std::map<Generation, Version>& line = line_[Value(shard)];
  const auto generation = line.find(version.generation);
  return generation != line.end() && version.version <= generation->second;
}

void Evidence::FindLost() {
  for (const auto& [key, push] : pushes) {
    if (!push.made.slot.has_value() || !push.taken.has_value()) continue;
    if (Survives(key.shard, {key.generation, push.taken->version})) continue;
    ForEachBatch(push.made.batches, [&, shard = key.shard, by = key.incarnation](uint64_t batch) {
      lost.emplace(shard, batch);
      if (died.contains(by)) lost_with_dead.insert(batch);
    });
  }
}

void Evidence::FindEntriesInAnswers() {
  for (size_t shard = 0; shard < weights.size(); ++shard) {
    for (const auto& [version, after] : weights[shard]) entries[shard][version];
  }
  for (const auto& [key, push] : pushes) {
    if (!push.made.slot.has_value() || !push.taken.has_value()) continue;
    const PushOutcome outcome = push.taken->outcome;
    if (outcome != PushOutcome::kApplied && outcome != PushOutcome::kBuffered) continue;
    if (!Survives(key.shard, {key.generation, push.taken->version})) continue;
    const auto found = entries[Value(key.shard)].find(push.taken->version);
    if (found == entries[Value(key.shard)].end()) continue;  // CheckPushes reports it.
    found->second.push_back({*push.made.slot, found->first, 0, &push});
  }
}

void Evidence::FindEntriesInWeights() {
  std::map<std::pair<ShardId, uint32_t>, const PushEvidence*> by_slot;
  for (const auto& [key, push] : pushes) {
    if (!push.made.slot.has_value()) continue;
    // A gradient that was refused or is lost may have used the slot before.
    const PushEvidence*& of_slot = by_slot[{key.shard, *push.made.slot}];
    const bool counts =
        push.taken.has_value() && Survives(key.shard, {key.generation, push.taken->version});
    if (of_slot == nullptr || counts) of_slot = &push;
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
  Phase phase = Phase::kWaitingForServers;
  const auto settle = [&] {
    died = registered;
    for (const Member& member : last.members) died.erase(member.incarnation);
  };
  for (const Event& event : history.events) {
    if (const auto* heard = std::get_if<WorkerHeard>(&event)) {
      if (heard->what == WorkerHeard::What::kRegistered) {
        registered.insert(heard->worker.incarnation);
      }
    } else if (const auto* view = std::get_if<ViewMade>(&event)) {
      last = view->view;
    } else if (const auto* made = std::get_if<PhaseMade>(&event)) {
      // Training may go on after a measurement, if shards in step went on from a checkpoint.
      const bool ends = made->phase >= Phase::kEvaluating;
      if (ends && phase < Phase::kEvaluating) settle();
      phase = made->phase;
    }
  }
  if (phase < Phase::kEvaluating) settle();
}

std::string Text(const PushKey& push) {
  return fmt::format("shard {} worker {}#{} generation {} sequence {}", Value(push.shard),
                     Value(push.worker), Value(push.incarnation), Value(push.generation),
                     Value(push.sequence));
}

}  // namespace slipstream
