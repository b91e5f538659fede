#ifndef SLIPSTREAM_WORKER_TRAINING_PLAN_LINKS_H_
#define SLIPSTREAM_WORKER_TRAINING_PLAN_LINKS_H_

#include "worker/client/gradient_feed.h"
#include "worker/client/weights_listener.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// What lets a plan and the client's lanes work on the same arenas at once; neither knows the
/// other.

/// Tells a plan what lanes do with its weights. Thread-safe; the plan must outlive it.
class PlanWeights final : public WeightsListener {
 public:
  explicit PlanWeights(Plan& plan) : plan_(plan) {}

  void OnWeightsArrived(ParameterRange range) override { plan_.WeightsArrived(range); }
  void OnWeightsRevoked(ParameterRange range) override { plan_.RevokeWeights(range); }
  void OnWeightsAbandoned() override { plan_.AbandonWeights(); }

 private:
  Plan& plan_;
};

/// Tells lanes, by their feed, what a plan has finished of one gradient. The feed must outlive it.
class PlanGradient final : public GradientListener {
 public:
  explicit PlanGradient(GradientFeed& feed) : feed_(feed) {}

  void OnGradientReady(ParameterRange range) override { feed_.OnReady(range); }

 private:
  GradientFeed& feed_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_PLAN_LINKS_H_
