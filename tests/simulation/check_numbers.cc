#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "common/kernels/rules/tensor_rules.h"
#include "tests/simulation/checkers.h"
#include "tests/simulation/gradients.h"
#include "tests/simulation/weighing.h"

namespace slipstream {
namespace {

// The error of a float's sum of a few terms of size one, with some room.
constexpr double kTolerance = 1e-4;

using Vector = std::vector<double>;

/// The sum of gradients at one position.
struct Sum {
  double value = 0;
  double size = 0;  // The sum of their magnitudes.

  /// A rule that divides by the size of gradients turns the rounding of a sum that cancels out into
  /// a step. So such a sum says nothing of the step.
  bool is_certain() const { return size == 0 || std::abs(value) > 1e-2; }
};

/// The run's compensation of stale gradients, with what it remembers of each position of a shard.
class Compensation {
 public:
  explicit Compensation(const OptimizerSpec& optimizer)
      : kind_(optimizer.staleness_scaling),
        strength_(optimizer.scaling_parameters[kind_ == StalenessScaling::kDelayAdaptive
                                                   ? "delay_strength"
                                                   : "delay_compensation"]) {}

  /// Returns the value that counts for a gradient's value g at position i, whose weight has moved.
  double Of(size_t i, double g, double moved) {
    switch (kind_) {
      case StalenessScaling::kDelayCompensated:
        return g + strength_ * g * g * moved;
      case StalenessScaling::kDelayAdaptive:
        history_[i] = 0.95 * history_[i] + 0.05 * g * g;
        return g + strength_ / std::sqrt(history_[i] + 1e-7) * g * g * moved;
      case StalenessScaling::kGapAware: {
        const double step = history_[i] + 1e-20;
        return g * step / (step + std::abs(moved));
      }
      default:
        return g;
    }
  }

  void OnUpdate(const std::vector<float>& before, const std::vector<float>& after) {
    if (kind_ != StalenessScaling::kGapAware) return;
    const double share = 1.0 / static_cast<double>(std::min<uint64_t>(++updates_, 100));
    for (size_t i = 0; i < history_.size(); ++i) {
      const double step = std::abs(double{after[i]} - double{before[i]});
      history_[i] += share * (step - history_[i]);
    }
  }

 private:
  const StalenessScaling kind_;
  const double strength_;
  Vector history_ = Vector(Gradients::kShardValues);
  uint64_t updates_ = 0;
};

/// Makes the versions of one shard again, each from the published one before it.
class Replay {
 public:
  Replay(const Scenario& scenario, const Evidence& evidence, uint32_t shard, Findings& findings)
      : scenario_(scenario),
        evidence_(evidence),
        shard_(shard),
        findings_(findings),
        rules_(
            scenario.run.server_optimizer(), Gradients(scenario).layout(),
            {size_t{shard} * Gradients::kShardValues, size_t{shard + 1} * Gradients::kShardValues}),
        row_(RowOf(scenario.run.server_optimizer().kind)),
        scalars_(rules_.InitialScalars()),
        compensation_(scenario.run.optimizer),
        weighing_(scenario) {
    states_.fill(std::vector<float>(Gradients::kShardValues));
  }

  void Take(Version version, const std::vector<float>& before, const std::vector<float>& after) {
    const std::vector<Entry>& entries = evidence_.entries[shard_].at(version);
    std::vector<Sum> combined(Gradients::kShardValues);
    std::vector<float> expected = before;
    if (!entries.empty()) {
      const std::optional<StepSize> step = Combine(version, entries, before, combined);
      if (!step.has_value()) return;
      expected = Update(before, combined, *step);
      compensation_.OnUpdate(before, after);
    }
    const bool is_certain = std::ranges::all_of(combined, &Sum::is_certain);
    // A rule that measures tensors lets every position follow from all.
    if (!is_certain && row_.measures_tensors) return;
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool counts = row_.kind == RuleKind::kSgd || combined[i].is_certain();
      if (!counts || std::abs(expected[i] - after[i]) <= kTolerance) continue;
      return findings_.Add("shard {} version {}: position {} is {}, its gradients, {}, lead to {}",
                           shard_, Value(version), i, after[i], combined[i].value, expected[i]);
    }
  }

 private:
  /// Adds up the gradients of a version and returns the size of its step; null if others report
  /// that something is missing.
  std::optional<StepSize> Combine(Version version, const std::vector<Entry>& entries,
                                  const std::vector<float>& now, std::vector<Sum>& combined) {
    std::vector<double> lags;
    for (const Entry& entry : entries) {
      if (entry.push == nullptr) return std::nullopt;  // CheckPushes reports it.
      lags.push_back(static_cast<double>(Value(version) - 1 - Value(entry.push->made.base)));
    }
    const Weighing::Factors factors =
        weighing_.Take(evidence_.StageOf(shard_, version), entries, lags);
    for (size_t k = 0; k < entries.size(); ++k) {
      const auto base = evidence_.weights[shard_].find(entries[k].push->made.base);
      if (base == evidence_.weights[shard_].end())
        return std::nullopt;  // CheckVersions reports it.
      const std::vector<float> gradient = GradientOf(*entries[k].push, *base->second);
      for (size_t i = 0; i < combined.size(); ++i) {
        const double moved = double{now[i]} - double{(*base->second)[i]};
        const double part = factors.shares[k] * compensation_.Of(i, gradient[i], moved);
        combined[i].value += part;
        combined[i].size += std::abs(part);
      }
    }
    return StepSize{.rate = static_cast<float>(factors.rate),
                    .scale = static_cast<float>(factors.scale)};
  }

  std::vector<float> GradientOf(const PushEvidence& push, const std::vector<float>& base) const {
    if (push.arrived != nullptr) return *push.arrived;
    std::vector<float> gradient(Gradients::kShardValues);
    Gradients::ComputeDense(scenario_, push.made.batches, shard_, base, gradient);
    gradient[*push.made.slot] = 1;
    return gradient;
  }

  /// Makes one update by the rule, which tests/common/kernels compares with others' optimizers.
  std::vector<float> Update(const std::vector<float>& before, const std::vector<Sum>& combined,
                            const StepSize& step) {
    std::vector<float> after(before.size());
    std::array<std::vector<float>, kStateArraysMax> next;
    UpdateArrays arrays = {.weights_in = before, .weights_out = after};
    for (uint32_t i = 0; i < row_.state_arrays; ++i) {
      next[i].resize(before.size());
      arrays.states[i] = {states_[i], next[i]};
    }
    std::vector<float> gradient;
    for (const Sum& sum : combined) gradient.push_back(static_cast<float>(sum.value));
    scalars_ = rules_.Next(scalars_);
    rules_.Update(0, arrays, {.sum = gradient}, step, scalars_, Stores::kCached);
    if (row_.measures_tensors) rules_.FinishTensor(0, before, after, step);
    for (uint32_t i = 0; i < row_.state_arrays; ++i) states_[i] = std::move(next[i]);
    return after;
  }

  const Scenario& scenario_;
  const Evidence& evidence_;
  const uint32_t shard_;
  Findings& findings_;
  const TensorRules rules_;
  const RuleRow& row_;
  std::array<std::vector<float>, kStateArraysMax> states_;
  RuleScalars scalars_;
  Compensation compensation_;
  Weighing weighing_;
};

/// Checks that a gradient computed from the latest weights given is not refused as too stale,
/// unless a bound says so. With several gradients in flight, it is unknown here which weights were
/// the latest for it.
void CheckBases(const Scenario& scenario, const History& history, Findings& findings) {
  const bool rejects = scenario.guard().action == StalenessGuardSpec::Action::kReject;
  if (rejects || scenario.stages_in_rounds() > 0 || scenario.run.training.pipeline_depth > 1)
    return;
  std::map<PushKey, Version> bases;
  std::map<std::pair<ShardId, Incarnation>, GenerationVersion> given;
  for (const Event& event : history.events) {
    if (const auto* made = std::get_if<PushMade>(&event)) {
      bases[made->push] = made->base;
    } else if (const auto* served = std::get_if<WeightsServed>(&event)) {
      if (served->trainer.has_value()) {
        given[{served->shard, served->trainer->incarnation}] = served->version;
      }
    } else if (const auto* decided = std::get_if<PushDecided>(&event)) {
      const PushKey& push = decided->push;
      const bool is_of_older_generation = push.generation < decided->reply.generation;
      if (decided->reply.outcome != PushOutcome::kTooStale || is_of_older_generation) continue;
      const auto last = given.find({push.shard, push.incarnation});
      if (last == given.end() || last->second != GenerationVersion{push.generation, bases[push]})
        continue;
      findings.Add("{}: too stale, though it was given version {} last", Text(push),
                   Value(last->second.version));
    }
  }
}

}  // namespace

void CheckNumbers(const Scenario& scenario, const History& history, const Evidence& evidence,
                  Findings& findings) {
  // Gradients are computed from weights that are no version's alone, if these change in place.
  if (scenario.run.consistency.traits().adds_in_place()) return;
  for (uint32_t shard = 0; shard < evidence.weights.size(); ++shard) {
    Values before;
    Replay replay(scenario, evidence, shard, findings);
    for (const auto& [version, after] : evidence.weights[shard]) {
      if (before != nullptr) replay.Take(version, *before, *after);
      before = after;
    }
  }
  CheckBases(scenario, history, findings);
}

namespace {

/// Half a step of int8 if the largest value is 1, plus the rounding of sums.
constexpr double kHalfStep = 0.5 / 127 + 1e-5;

/// The rounding of sums of some hundred values, with some room.
constexpr double kSumTolerance = 1e-3;

/// Returns whether `arrived` is what the codec makes of `wanted`: int8 rounds each value; the
/// others send the mean of the positive and that of the negative values of a block, or of a part of
/// them, and topk each value itself.
bool IsEncoded(Encoding codec, const Vector& wanted, const std::vector<float>& arrived) {
  const size_t block = RowOf(codec).block_values;
  for (size_t begin = 0; begin < wanted.size(); begin += block) {
    double positive = 0;
    double negative = 0;
    for (size_t i = begin; i < std::min(begin + block, wanted.size()); ++i) {
      const double lost = wanted[i] - double{arrived[i]};
      if (codec == Encoding::kInt8 && std::abs(lost) > kHalfStep) return false;
      const bool is_sent = arrived[i] != 0;
      if (codec == Encoding::kTopK && is_sent && std::abs(lost) > kTolerance) return false;
      if (is_sent) (arrived[i] > 0 ? positive : negative) += lost;
    }
    if (codec == Encoding::kInt8) continue;
    if (std::abs(positive) > kSumTolerance || std::abs(negative) > kSumTolerance) return false;
  }
  return true;
}

/// The gradients of one slot of a worker at one shard, as they were computed and as they arrived.
class Lane {
 public:
  Lane(const Scenario& scenario, const Evidence& evidence)
      : scenario_(scenario), evidence_(evidence), error_(Gradients::kShardValues) {}

  void OnMade(const PushMade& made) {
    made_ = made;
    arrived_ = nullptr;
    error_before_.reset();
  }

  /// The push counts, so the next gradient has to make up for the values that this one has lost.
  void OnCounts(const PushKey& push, Findings& findings) {
    if (arrived_ == nullptr) {
      return findings.Add("{}: counts, but what arrived is another gradient", Text(push));
    }
    error_before_ = error_;
    for (size_t i = 0; i < error_.size(); ++i) error_[i] = wanted_[i] - double{(*arrived_)[i]};
  }

  /// The worker has read that the push is refused, as one of an older generation of the shard. If
  /// an earlier answer said that it counts, that was lost.
  void OnRefused() {
    if (error_before_.has_value()) error_ = *std::exchange(error_before_, std::nullopt);
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
    const auto& published = evidence_.published[Value(event.push.shard)];
    const auto base = published.find({event.push.generation, made_.base});
    if (base == published.end()) return;  // CheckVersions reports it.
    std::vector<float> gradient(Gradients::kShardValues);
    Gradients::ComputeDense(scenario_, made_.batches, Value(event.push.shard), *base->second,
                            gradient);
    gradient[*made_.slot] = 1;
    wanted_ = error_;
    for (size_t i = 0; i < wanted_.size(); ++i) wanted_[i] += gradient[i];
    if (IsEncoded(scenario_.run.wire.push_codec, wanted_, *arrived_)) return;
    findings.Add(
        "{}: what arrived is not what {} makes of the gradient and of what was lost before",
        Text(event.push), RowOf(scenario_.run.wire.push_codec).name);
  }

 private:
  const Scenario& scenario_;
  const Evidence& evidence_;
  Vector error_;                        // The loss of earlier gradients.
  std::optional<Vector> error_before_;  // Before the present one counted, if it does.
  Vector wanted_;                       // The present gradient plus that error.
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
    } else if (const auto* answered = std::get_if<PushAnswered>(&event)) {
      const auto lane = by_push.find(answered->push);
      const bool is_refused = IsRefusal(answered->reply.outcome);
      if (is_refused && lane != by_push.end()) lane->second->OnRefused();
    }
  }
}

}  // namespace slipstream
