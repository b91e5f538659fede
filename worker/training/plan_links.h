#ifndef SLIPSTREAM_WORKER_TRAINING_PLAN_LINKS_H_
#define SLIPSTREAM_WORKER_TRAINING_PLAN_LINKS_H_

#include "worker/client/gradient_feed.h"
#include "worker/client/weights_arrival.h"
#include "worker/compute/plan.h"
#include "worker/training/gradient_clip.h"

namespace slipstream {

/// Adapters that let a plan and the client's lanes work on the same arenas at once, without knowing
/// each other.

/// Tells the arenas that plans compute from what lanes do with their weights. Thread-safe; the
/// arenas must outlive this object.
class PlanWeights final : public WeightsListener {
 public:
  explicit PlanWeights(ModelArenas& arenas) : arenas_(arenas) {}

  void OnWeightsArrived(ParameterRange range) override { arenas_.WeightsArrived(range); }
  void OnWeightsRevoked(ParameterRange range) override { arenas_.RevokeWeights(range); }
  void OnWeightsAbandoned() override { arenas_.AbandonWeights(); }

 private:
  ModelArenas& arenas_;
};

/// Tells lanes, through their feed, which part of a gradient the plan has finished, once its values
/// are clipped. All arguments must outlive this object.
class PlanGradient final : public GradientListener {
 public:
  PlanGradient(Plan& plan, const GradientClip& clip, GradientFeed& feed)
      : plan_(plan), clip_(clip), feed_(feed) {}

  void OnGradientReady(ParameterRange range) override {
    clip_.ClipValues(plan_.gradients_host().subspan(range.begin, range.size()));
    feed_.OnReady(range);
  }

 private:
  Plan& plan_;
  const GradientClip& clip_;
  GradientFeed& feed_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_PLAN_LINKS_H_
