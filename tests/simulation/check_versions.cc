#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/simulation/checkers.h"
#include "tests/simulation/gradients.h"

namespace slipstream {
namespace {

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Published {
  Generation generation{};
  std::optional<Version> version;
  std::map<GenerationVersion, Values> weights;
  Phase phase = Phase::kWaitingForServers;
};

void OnPublished(const VersionPublished& event, Published& shard, Findings& findings) {
  // Until training begins, another client may send the initial weights again.
  const bool is_first =
      event.version == Version{} && shard.version.value_or(Version{}) == Version{};
  if (!is_first && (!shard.version.has_value() || event.version != Next(*shard.version))) {
    findings.Add("shard {}: version {} out of turn", Value(event.shard), Value(event.version));
  }
  shard.version = event.version;
  shard.weights[{event.generation, event.version}] = event.weights;
}

void OnReturned(const ShardReturned& event, Published& shard, Findings& findings) {
  if (event.generation <= shard.generation) {
    findings.Add("shard {}: generation {} after generation {}", Value(event.shard),
                 Value(event.generation), Value(shard.generation));
  }
  const auto found = shard.weights.find({event.from.generation, event.from.version});
  if (found == shard.weights.end() || !SameBits(*found->second, *event.weights)) {
    findings.Add(
        "shard {}: generation {} does not begin with the weights of version {} of generation {}",
        Value(event.shard), Value(event.generation), Value(event.from.version),
        Value(event.from.generation));
  }
  shard.generation = event.generation;
  shard.version = event.from.version;
  shard.weights[{event.generation, event.from.version}] = event.weights;
}

/// With a log, all versions that anybody has seen are there after the end of a process, and no
/// others.
void OnWentOn(const ShardWentOn& event, const Published& shard, Findings& findings) {
  const auto found = shard.weights.find({event.generation, event.version});
  const bool is_newest = event.generation == shard.generation && event.version == shard.version;
  if (is_newest && found != shard.weights.end() && SameBits(*found->second, *event.weights)) return;
  findings.Add("shard {}: goes on from version {}, which is not version {} that it published",
               Value(event.shard), Value(event.version), Value(shard.version.value_or(Version{})));
}

/// Checks that shards in step went on from one version in each generation. In a run that goes on
/// under another policy, a shard may return alone to a version from before.
void CheckInStep(const Scenario& scenario, const History& history, Findings& findings) {
  const size_t last = scenario.run.policies_before.size() + scenario.changes.size();
  if (!scenario.HasRounds(static_cast<uint32_t>(last))) return;
  std::map<Generation, std::pair<SavedVersion, std::set<ShardId>>> returns;
  for (const Event& event : history.events) {
    const auto* returned = std::get_if<ShardReturned>(&event);
    if (returned == nullptr || !scenario.HasRounds(returned->from.stage)) continue;
    auto& [from, shards] =
        returns.try_emplace(returned->generation, returned->from, std::set<ShardId>())
            .first->second;
    shards.insert(returned->shard);
    if (from == returned->from) continue;
    findings.Add("generation {} begins with version {} on shard {}, and with {} on another",
                 Value(returned->generation), Value(returned->from.version), Value(returned->shard),
                 Value(from.version));
  }
  // Shards may leave out a generation that ends before it has begun everywhere, but not the last
  // one.
  if (returns.empty() || returns.rbegin()->second.second.size() == history.ends.size()) return;
  findings.Add("generation {} has not begun on all shards, which are in step",
               Value(returns.rbegin()->first));
}

void OnServed(const Scenario& scenario, const WeightsServed& event, const Published& shard,
              Findings& findings) {
  // Gradients that were added before their turn are published together with the one before them. A
  // worker that takes a lost one's place may do the last round again.
  const Version version = event.version.version;
  const bool in_place = scenario.run.consistency.traits().adds_in_place();
  const bool may_repeat = scenario.run.repeats_rounds() && event.trainer.has_value() &&
                          event.sequence == Sequence{1} && Next(version) == shard.version;
  const bool is_kept =
      may_repeat || (in_place ? version <= shard.version : version == shard.version);
  const bool is_published =
      shard.version.has_value() && event.version.generation == shard.generation && is_kept;
  if (!is_published) {
    findings.Add("shard {}: version {} was served, which is not the published one",
                 Value(event.shard), Value(version));
  }
  // After the last update there is no newer version, so an older one is served.
  if (event.version < event.asked && shard.phase < Phase::kTraining) {
    findings.Add("shard {}: version {} was served to one who asked for {}", Value(event.shard),
                 Value(version), Value(event.asked.version));
  }
}

/// Returns whether weights hold each gradient of a version that is counted in them, and no part of
/// one.
bool HoldsAll(const std::vector<float>& weights, const std::vector<float>& version) {
  for (uint32_t slot = 0; slot < Gradients::kSlots; ++slot) {
    if (version[slot] != 0 && weights[slot] != version[slot]) return false;
  }
  return true;
}

void OnReceived(const WeightsReceived& event, const Published& shard, bool in_place,
                Findings& findings) {
  const auto found = shard.weights.find(event.version);
  if (found == shard.weights.end()) {
    findings.Add("shard {}: version {} was read before it was published", Value(event.shard),
                 Value(event.version.version));
  } else if (in_place ? !HoldsAll(*event.weights, *found->second)
                      : !SameBits(*found->second, *event.weights)) {
    findings.Add("shard {}: worker {} read other numbers as version {}", Value(event.shard),
                 Value(event.reader.worker), Value(event.version.version));
  }
}

/// Checks that each acknowledged gradient is in the version that its answer named, and that the
/// last weights hold it once.
void CheckSums(const Scenario& scenario, const Evidence& evidence, Findings& findings) {
  const auto rate = static_cast<float>(scenario.run.server_optimizer().learning_rate);
  std::vector<std::vector<float>> sums(evidence.weights.size(),
                                       std::vector<float>(Gradients::kSlots));
  for (const auto& [key, push] : evidence.pushes) {
    const bool counts = push.taken.has_value() && push.taken->outcome == PushOutcome::kApplied;
    if (!counts || !push.made.slot.has_value()) continue;
    sums[Value(key.shard)][*push.made.slot] -= rate;
    const auto version = evidence.weights[Value(key.shard)].find(push.taken->version);
    if (version == evidence.weights[Value(key.shard)].end()) continue;  // Others report it.
    if ((*version->second)[*push.made.slot] != 0) continue;
    findings.Add("{}: said to be in version {}, is not", Text(key), Value(version->first));
  }
  for (size_t shard = 0; shard < sums.size(); ++shard) {
    const std::vector<float>& last = *evidence.weights[shard].rbegin()->second;
    for (uint32_t slot = 0; slot < Gradients::kSlots; ++slot) {
      if (last[slot] == sums[shard][slot]) continue;
      findings.Add("shard {}: position {} is {} in the end, and what was acknowledged leads to {}",
                   shard, slot, last[slot], sums[shard][slot]);
    }
  }
}

}  // namespace

namespace {

void CheckFinal(const Scenario& scenario, const FinalReported& final,
                const std::vector<Published>& shards, Findings& findings) {
  const uint32_t stages = static_cast<uint32_t>(scenario.run.stages().size());
  const bool is_in_step = scenario.stages_in_rounds() == stages;
  size_t offset = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    // A shard that is alone in a later generation was measured before its server was killed.
    const bool has_returned = !is_in_step && final.versions[i].generation < shards[i].generation;
    const GenerationVersion expected =
        has_returned ? final.versions[i]
                     : GenerationVersion{shards[i].generation, *shards[i].version};
    const auto found = shards[i].weights.find(expected);
    if (found == shards[i].weights.end()) continue;  // OnReceived reports it.
    const std::vector<float>& last = *found->second;
    const auto begin = final.weights.begin() + static_cast<std::ptrdiff_t>(offset);
    offset += last.size();
    const std::vector<float> part(begin, begin + static_cast<std::ptrdiff_t>(last.size()));
    // Shards in step that return to the final version itself begin another generation with it.
    if (final.versions[i].version == expected.version && SameBits(part, last)) continue;
    findings.Add("shard {}: version {} was measured as the final one, which is {}", i,
                 Value(final.versions[i].version), Value(expected.version));
  }
}

}  // namespace

void CheckVersions(const Scenario& scenario, const History& history, const Evidence& evidence,
                   Findings& findings) {
  const bool in_place = scenario.run.consistency.traits().adds_in_place();
  if (in_place && history.is_finished) CheckSums(scenario, evidence, findings);
  CheckInStep(scenario, history, findings);
  std::vector<Published> shards(evidence.weights.size());
  for (const Event& event : history.events) {
    if (const auto* published = std::get_if<VersionPublished>(&event)) {
      OnPublished(*published, shards[Value(published->shard)], findings);
    } else if (const auto* returned = std::get_if<ShardReturned>(&event)) {
      OnReturned(*returned, shards[Value(returned->shard)], findings);
    } else if (const auto* went_on = std::get_if<ShardWentOn>(&event)) {
      OnWentOn(*went_on, shards[Value(went_on->shard)], findings);
    } else if (const auto* phase = std::get_if<OrdersTaken>(&event)) {
      shards[Value(phase->shard)].phase = phase->phase;
    } else if (const auto* served = std::get_if<WeightsServed>(&event)) {
      OnServed(scenario, *served, shards[Value(served->shard)], findings);
    } else if (const auto* received = std::get_if<WeightsReceived>(&event)) {
      OnReceived(*received, shards[Value(received->shard)], in_place, findings);
    } else if (const auto* answered = std::get_if<PushAnswered>(&event)) {
      const Published& shard = shards[Value(answered->push.shard)];
      if (answered->reply.outcome == PushOutcome::kApplied &&
          !shard.weights.contains({answered->reply.generation, answered->reply.version})) {
        findings.Add("{}: answered as part of version {}, which is not published",
                     Text(answered->push), Value(answered->reply.version));
      }
    } else if (const auto* final = std::get_if<FinalReported>(&event)) {
      CheckFinal(scenario, *final, shards, findings);
    }
  }
}

namespace {

/// Returns whether the weights are the same bits. If mini-batches were done again, their gradients
/// have other counting positions, so these are compared in order of their values.
bool SameSums(const std::vector<float>& a, const std::vector<float>& b, bool in_any_order) {
  if (!in_any_order) return SameBits(a, b);
  std::vector<float> left = a;
  std::vector<float> right = b;
  std::sort(left.begin(), left.begin() + Gradients::kSlots);
  std::sort(right.begin(), right.begin() + Gradients::kSlots);
  return SameBits(left, right);
}

}  // namespace

std::vector<std::string> CheckEqual(const History& history, const History& without_faults) {
  constexpr bool kShowsGradients = false;  // Whole versions are compared, and no gradients sought.
  const Evidence evidence(history, kShowsGradients);
  const Evidence expected(without_faults, kShowsGradients);
  const bool has_returned = std::ranges::any_of(history.events, [](const Event& event) {
    return std::holds_alternative<ShardReturned>(event);
  });
  const bool has_repeats = has_returned || !evidence.died.empty();
  Findings findings;
  for (size_t shard = 0; shard < evidence.weights.size(); ++shard) {
    const auto& [version, last] = *evidence.weights[shard].rbegin();
    const auto& [expected_version, expected_last] = *expected.weights[shard].rbegin();
    if (version == expected_version && SameSums(*last, *expected_last, has_repeats)) continue;
    findings.Add("shard {}: version {} is not version {} of the run without faults", shard,
                 Value(version), Value(expected_version));
  }
  return findings.lines();
}

}  // namespace slipstream
