#ifndef SLIPSTREAM_DEPLOY_LAB_LOCAL_ARENAS_H_
#define SLIPSTREAM_DEPLOY_LAB_LOCAL_ARENAS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "worker/compute/plan.h"

namespace slipstream {

/// The weights and the gradient of a virtual worker that takes local steps. A lane's plan computes
/// from copies of them.
///
/// Not thread-safe: one owner.
class LocalArenas final : public ModelArenas {
 public:
  explicit LocalArenas(size_t parameters) : weights_(parameters), gradients_(parameters) {}

  std::span<float> weights_host() override { return weights_; }
  std::span<float> gradients_host() override { return gradients_; }
  void ExpectWeights() override {}
  void WeightsArrived(ParameterRange /*range*/) override {}
  void RevokeWeights(ParameterRange /*range*/) override {}
  void AbandonWeights() override {}

 private:
  std::vector<float> weights_;
  std::vector<float> gradients_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_LOCAL_ARENAS_H_
