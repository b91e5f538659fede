#include <cstring>
#include <map>
#include <vector>

#include "tests/simulation/checkers.h"
#include "tests/simulation/gradients.h"

namespace slipstream {
namespace {

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Published {
  std::optional<Version> version;
  std::map<Version, Values> weights;
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
  shard.weights[event.version] = event.weights;
}

void OnServed(const WeightsServed& event, const Published& shard, bool in_place,
              Findings& findings) {
  // Gradients that were added before their turn are published together with the one before them.
  const bool is_published =
      shard.version.has_value() &&
      (in_place ? event.version <= *shard.version : event.version == *shard.version);
  if (!is_published) {
    findings.Add("shard {}: version {} was served, which is not the published one",
                 Value(event.shard), Value(event.version));
  }
  // After the last update there is no newer version, so an older one is served.
  if (event.version < event.asked && shard.phase < Phase::kTraining) {
    findings.Add("shard {}: version {} was served to one who asked for {}", Value(event.shard),
                 Value(event.version), Value(event.asked));
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
                 Value(event.version));
  } else if (in_place ? !HoldsAll(*event.weights, *found->second)
                      : !SameBits(*found->second, *event.weights)) {
    findings.Add("shard {}: worker {} read other numbers as version {}", Value(event.shard),
                 Value(event.reader.worker), Value(event.version));
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

void CheckVersions(const Scenario& scenario, const History& history, const Evidence& evidence,
                   Findings& findings) {
  const bool in_place = scenario.run.consistency.traits().in_place;
  if (in_place && history.is_finished) CheckSums(scenario, evidence, findings);
  std::vector<Published> shards(evidence.weights.size());
  for (const Event& event : history.events) {
    if (const auto* published = std::get_if<VersionPublished>(&event)) {
      OnPublished(*published, shards[Value(published->shard)], findings);
    } else if (const auto* phase = std::get_if<OrdersTaken>(&event)) {
      shards[Value(phase->shard)].phase = phase->phase;
    } else if (const auto* served = std::get_if<WeightsServed>(&event)) {
      OnServed(*served, shards[Value(served->shard)], in_place, findings);
    } else if (const auto* received = std::get_if<WeightsReceived>(&event)) {
      OnReceived(*received, shards[Value(received->shard)], in_place, findings);
    } else if (const auto* answered = std::get_if<PushAnswered>(&event)) {
      const Published& shard = shards[Value(answered->push.shard)];
      if (answered->reply.outcome == PushOutcome::kApplied &&
          !shard.weights.contains(answered->reply.version)) {
        findings.Add("{}: answered as part of version {}, which is not published",
                     Text(answered->push), Value(answered->reply.version));
      }
    } else if (const auto* final = std::get_if<FinalReported>(&event)) {
      size_t offset = 0;
      for (size_t i = 0; i < shards.size(); ++i) {
        const std::vector<float>& last = *shards[i].weights.rbegin()->second;
        const auto begin = final->weights.begin() + static_cast<std::ptrdiff_t>(offset);
        offset += last.size();
        const std::vector<float> part(begin, begin + static_cast<std::ptrdiff_t>(last.size()));
        if (final->versions[i] == *shards[i].version && SameBits(part, last)) continue;
        findings.Add("shard {}: version {} was measured as the final one, which is {}", i,
                     Value(final->versions[i]), Value(*shards[i].version));
      }
    }
  }
}

std::vector<std::string> CheckEqual(const History& history, const History& without_faults) {
  constexpr bool kShowsGradients = false;  // Whole versions are compared, and no gradients sought.
  const Evidence evidence(history, kShowsGradients);
  const Evidence expected(without_faults, kShowsGradients);
  Findings findings;
  for (size_t shard = 0; shard < evidence.weights.size(); ++shard) {
    const auto& [version, last] = *evidence.weights[shard].rbegin();
    const auto& [expected_version, expected_last] = *expected.weights[shard].rbegin();
    if (version == expected_version && SameBits(*last, *expected_last)) continue;
    findings.Add("shard {}: version {} is not version {} of the run without faults", shard,
                 Value(version), Value(expected_version));
  }
  return findings.lines();
}

}  // namespace slipstream
