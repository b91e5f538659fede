#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>
#include <vector>

#include "tests/simulation/checkers.h"
#include "tests/simulation/gradients.h"

namespace slipstream {
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
