#ifndef SLIPSTREAM_TESTS_WORKER_COMPUTE_DOUBLE_NET_H_
#define SLIPSTREAM_TESTS_WORKER_COMPUTE_DOUBLE_NET_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/model/model_spec.h"
#include "common/model/net_shapes.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// A second implementation of a net, naive and in double precision, from the definitions of its
/// layers. It has no backward pass: its gradients are central differences, which in double
/// precision are exact enough to check single-precision ones.
class DoubleNet {
 public:
  DoubleNet(const ModelSpec& model, uint64_t dropout_seed);

  /// Returns the mean loss, with dropout if `training`.
  double Loss(std::span<const double> weights, const Batch& batch, bool training) const;

  std::vector<float> Gradients(std::span<const float> weights, const Batch& batch) const;

 private:
  const ModelSpec model_;
  const NetShapes shapes_;
  const uint64_t dropout_seed_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_COMPUTE_DOUBLE_NET_H_
