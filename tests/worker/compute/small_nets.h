#ifndef SLIPSTREAM_TESTS_WORKER_COMPUTE_SMALL_NETS_H_
#define SLIPSTREAM_TESTS_WORKER_COMPUTE_SMALL_NETS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/model_spec.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// A net that is small enough for central differences. Together, the nets have every kind of layer
/// in every place that makes a difference to a device.
struct SmallNet {
  std::string name;
  std::vector<uint32_t> input;
  std::vector<LayerSpec> layers;  // A dense layer of 3 outputs follows.
  ModelSpec::Loss loss = ModelSpec::Loss::kCrossEntropy;

  ModelSpec Model() const;
};

const std::vector<SmallNet>& SmallNets();

/// One of the small nets for each kind of first layer, which is all that the way of an example to
/// the device depends on.
std::vector<SmallNet> NetsByFirstLayer();

/// The presets that one processor computes in milliseconds.
const std::vector<std::string_view>& QuickPresets();

/// Expects the losses and gradients of the device's plans to equal those of the net's definition in
/// double precision.
void ExpectGradientIsTheDerivativeOfTheLoss(Device& device, const SmallNet& net);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_COMPUTE_SMALL_NETS_H_
