#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>
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

/// The mean size of each position's steps in one shard, as gap_aware knows it.
struct MeanSteps {
  std::vector<double> sizes = std::vector<double>(Gradients::kShardValues);
  uint64_t updates = 0;

  void Note(const std::vector<float>& before, const std::vector<float>& after) {
    const double share = 1.0 / static_cast<double>(std::min<uint64_t>(++updates, 100));
    for (size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] += share * (std::abs(double{after[i]} - double{before[i]}) - sizes[i]);
    }
  }
};

/// Adds to `change` the effect of a gradient in a version on the dense positions. Each has the same
/// factor as the gradient's counting position.
void AddGradient(const Scenario& scenario, uint32_t shard, const Entry& entry,
                 const std::vector<float>& base, const std::vector<float>& now,
                 const MeanSteps& mean_steps, std::vector<double>& change) {
  std::vector<float> gradient(Gradients::kShardValues);
  Gradients::ComputeDense(scenario, entry.push->made.batches, shard, base, gradient);
  const double strength = Strength(scenario);
  const bool is_gap_aware = scenario.run.optimizer.staleness_scaling == StalenessScaling::kGapAware;
  for (size_t i = Gradients::kSlots; i < gradient.size(); ++i) {
    const double g = gradient[i];
    const double moved = double{now[i]} - double{base[i]};
    const double step = mean_steps.sizes[i] + 1e-20;
    const double share = is_gap_aware ? step / (step + std::abs(moved)) : 1;
    change[i] += entry.change * share * (g + strength * g * g * moved);
  }
}

void CheckVersion(const Scenario& scenario, uint32_t shard, const Evidence& evidence,
                  Version version, const std::vector<float>& before,
                  const std::vector<float>& after, const MeanSteps& mean_steps,
                  Findings& findings) {
  std::vector<double> change(Gradients::kShardValues);
  const bool is_rounded = scenario.run.wire.push_codec != Encoding::kFp32;
  double tolerance = kTolerance;
  for (const Entry& entry : evidence.entries[shard].at(version)) {
    // Compensation at most doubles the error of rounding.
    if (is_rounded) tolerance += 2 * kRoundingMax * std::abs(entry.change);
    if (entry.push == nullptr) return;  // CheckPushes reports it.
    const auto base = evidence.weights[shard].find(entry.push->made.base);
    if (base == evidence.weights[shard].end()) return;
    AddGradient(scenario, shard, entry, *base->second, before, mean_steps, change);
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
  if (rejects || scenario.stages_in_rounds() > 0 || scenario.run.training.pipeline_depth > 1)
    return;
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
    MeanSteps mean_steps;
    for (const auto& [version, after] : evidence.weights[shard]) {
      if (before != nullptr) {
        CheckVersion(scenario, shard, evidence, version, *before, *after, mean_steps, findings);
        if (!evidence.entries[shard].at(version).empty()) mean_steps.Note(*before, *after);
      }
      before = after;
    }
  }
  CheckBases(scenario, history, findings);
}

namespace {

/// Half a step of int8 if the largest value is 1, plus the rounding of sums.
constexpr double kErrorMax = 0.5 / 127 + 1e-5;

/// The gradients of one slot of a worker at one shard, as they were computed and as they arrived.
class Lane {
 public:
  Lane(const Scenario& scenario, const Evidence& evidence)
      : scenario_(scenario), evidence_(evidence), error_(Gradients::kShardValues) {}

  void OnMade(const PushMade& made) {
    made_ = made;
    arrived_ = nullptr;
  }

  /// The push counts, so the next gradient has to make up for the values that this one has lost.
  void OnCounts(const PushKey& push, Findings& findings) {
    if (arrived_ == nullptr) {
      return findings.Add("{}: counts, but what arrived is another gradient", Text(push));
    }
    for (size_t i = Gradients::kSlots; i < error_.size(); ++i) {
      error_[i] = wanted_[i] - double{(*arrived_)[i]};
    }
  }

  void OnArrived(const GradientArrived& event, Findings& findings) {
    // A refused push may arrive late, when its sequence belongs to another push.
    if (event.base != made_.base || event.batches != made_.batches) return;
    if (arrived_ != nullptr) {
      const size_t bytes = arrived_->size() * sizeof(float);
      if (std::memcmp(arrived_->data(), event.values->data(), bytes) != 0) {
        findings.Add("{}: a repetition brought other values", Text(event.push));
      }
      return;
    }
    arrived_ = event.values;
    const auto& weights = evidence_.weights[Value(event.push.shard)];
    const auto base = weights.find(made_.base);
    if (base == weights.end()) return;  // CheckVersions reports it.
    wanted_ = error_;
    std::vector<float> gradient(Gradients::kShardValues);
    Gradients::ComputeDense(scenario_, made_.batches, Value(event.push.shard), *base->second,
                            gradient);
    for (size_t i = Gradients::kSlots; i < wanted_.size(); ++i) {
      wanted_[i] += gradient[i];
      const double apart = std::abs(wanted_[i] - double{(*arrived_)[i]});
      if (apart <= kErrorMax) continue;
      return findings.Add("{}: position {} arrived as {}, with what was lost before it is {}",
                          Text(event.push), i, (*arrived_)[i], wanted_[i]);
    }
  }

 private:
  const Scenario& scenario_;
  const Evidence& evidence_;
  std::vector<double> error_;   // The loss of earlier gradients.
  std::vector<double> wanted_;  // The present gradient plus that error.
  PushMade made_;
  Values arrived_;
};

}  // namespace

void CheckCodec(const Scenario& scenario, const History& history, const Evidence& evidence,
                Findings& findings) {
  if (scenario.run.wire.push_codec == Encoding::kFp32) return;
  std::map<std::tuple<ShardId, Incarnation, uint32_t>, Lane> lanes;
  std::map<PushKey, Lane*> by_push;
  for (const Event& event : history.events) {
    if (const auto* made = std::get_if<PushMade>(&event)) {
      by_push.erase(made->push);  // A refused push may have had this sequence.
      if (!made->slot.has_value()) continue;
      const std::tuple key(made->push.shard, made->push.incarnation, made->pipeline_slot);
      Lane& lane = lanes.try_emplace(key, scenario, evidence).first->second;
      lane.OnMade(*made);
      by_push[made->push] = &lane;
    } else if (const auto* arrived = std::get_if<GradientArrived>(&event)) {
      const auto lane = by_push.find(arrived->push);
      if (lane != by_push.end()) lane->second->OnArrived(*arrived, findings);
    } else if (const auto* decided = std::get_if<PushDecided>(&event)) {
      const PushOutcome outcome = decided->reply.outcome;
      const auto lane = by_push.find(decided->push);
      const bool counts = outcome == PushOutcome::kApplied || outcome == PushOutcome::kBuffered;
      if (counts && lane != by_push.end()) lane->second->OnCounts(decided->push, findings);
    }
  }
}

}  // namespace slipstream
