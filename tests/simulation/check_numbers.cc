#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "tests/simulation/checkers.h"
#include "tests/simulation/gradients.h"

namespace slipstream {
namespace {

// The error of a float's sum of a few terms of size one, with some room.
constexpr double kTolerance = 1e-4;

// The error of one gradient rounded to int8: half a step, and half a step lost by the previous one.
constexpr double kRoundingMax = 1.0 / 127;

/// Returns λ of the delay compensation by base weights, and 0 for other compensations.
double Strength(const Scenario& scenario) {
  const OptimizerSpec& optimizer = scenario.run.optimizer;
  const bool applies = optimizer.staleness_scaling == StalenessScaling::kDelayCompensated;
  return applies ? optimizer.scaling_parameters["delay_compensation"] : 0;
}

/// Adds to `change` the effect of a gradient in a version on the dense positions. Each has the same
/// factor as the gradient's counting position.
void AddGradient(const Scenario& scenario, uint32_t shard, const Entry& entry,
                 const std::vector<float>& base, const std::vector<float>& now,
                 std::vector<double>& change) {
  std::vector<float> gradient(Gradients::kShardValues);
  Gradients::ComputeDense(scenario, entry.push->made.batches, shard, base, gradient);
  const double strength = Strength(scenario);
  for (size_t i = Gradients::kSlots; i < gradient.size(); ++i) {
    const double g = gradient[i];
    const double moved = double{now[i]} - double{base[i]};
    change[i] += entry.change * (g + strength * g * g * moved);
  }
}

void CheckVersion(const Scenario& scenario, uint32_t shard, const Evidence& evidence,
                  Version version, const std::vector<float>& before,
                  const std::vector<float>& after, Findings& findings) {
  std::vector<double> change(Gradients::kShardValues);
  const bool is_rounded = scenario.run.wire.push_codec != Encoding::kFp32;
  double tolerance = kTolerance;
  for (const Entry& entry : evidence.entries[shard].at(version)) {
    // Compensation at most doubles the error of rounding.
    if (is_rounded) tolerance += 2 * kRoundingMax * std::abs(entry.change);
    if (entry.push == nullptr) return;  // CheckPushes reports it.
    const auto base = evidence.weights[shard].find(entry.push->made.base);
    if (base == evidence.weights[shard].end()) return;
    AddGradient(scenario, shard, entry, *base->second, before, change);
  }
  for (size_t i = Gradients::kSlots; i < change.size(); ++i) {
    const double found = double{after[i]} - double{before[i]};
    if (std::abs(found - change[i]) <= tolerance) continue;
    return findings.Add("shard {} version {}: position {} changed by {}, its gradients come to {}",
                        shard, Value(version), i, found, change[i]);
  }
}

/// Checks that a gradient computed from the latest weights given is not refused as too stale,
/// unless a bound says so. With several gradients in flight, it is unknown here which weights were
/// the latest for it.
void CheckBases(const Scenario& scenario, const History& history, Findings& findings) {
  const bool rejects = scenario.guard().action == StalenessGuardSpec::Action::kReject;
  if (rejects || scenario.has_rounds() || scenario.run.training.pipeline_depth > 1) return;
  std::map<PushKey, Version> bases;
  std::map<std::pair<ShardId, Incarnation>, Version> given;
  for (const Event& event : history.events) {
    if (const auto* made = std::get_if<PushMade>(&event)) {
      bases[made->push] = made->base;
    } else if (const auto* served = std::get_if<WeightsServed>(&event)) {
      if (served->trainer.has_value()) {
        given[{served->shard, served->trainer->incarnation}] = served->version;
      }
    } else if (const auto* decided = std::get_if<PushDecided>(&event)) {
      const PushKey& push = decided->push;
      if (decided->reply.outcome != PushOutcome::kTooStale) continue;
      const auto last = given.find({push.shard, push.incarnation});
      if (last == given.end() || last->second != bases[push]) continue;
      findings.Add("{}: too stale, though it was given version {} last", Text(push),
                   Value(last->second));
    }
  }
}

}  // namespace

void CheckNumbers(const Scenario& scenario, const History& history, const Evidence& evidence,
                  Findings& findings) {
  for (uint32_t shard = 0; shard < evidence.weights.size(); ++shard) {
    Values before;
    for (const auto& [version, after] : evidence.weights[shard]) {
      if (before != nullptr) {
        CheckVersion(scenario, shard, evidence, version, *before, *after, findings);
      }
      before = after;
    }
  }
  CheckBases(scenario, history, findings);
}

}  // namespace slipstream
