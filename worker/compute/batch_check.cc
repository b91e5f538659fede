#include "worker/compute/batch_check.h"

#include <algorithm>
#include <string>

namespace slipstream {
namespace {

absl::Status CheckLabels(const NetSizes& net, const Batch& batch, size_t count) {
  if (batch.labels.size() != count) {
    return absl::InvalidArgumentError(std::to_string(batch.labels.size()) + " labels for " +
                                      std::to_string(count) + " examples");
  }
  const uint32_t largest = *std::max_element(batch.labels.begin(), batch.labels.end());
  if (largest >= net.outputs) {
    return absl::InvalidArgumentError("class " + std::to_string(largest) + " for a net of " +
                                      std::to_string(net.outputs) + " classes");
  }
  return absl::OkStatus();
}

}  // namespace

NetSizes NetSizes::Of(const ModelSpec& model, const NetShapes& shapes) {
  return {shapes.layout.parameters(), shapes.input().elements(), shapes.outputs(), model.loss};
}

absl::StatusOr<uint32_t> CheckBatch(const NetSizes& net, uint32_t batch_size_max,
                                    const Batch& batch) {
  const size_t count = batch.examples.size() / net.inputs;
  if (batch.examples.size() != count * net.inputs) {
    return absl::InvalidArgumentError(std::to_string(batch.examples.size()) +
                                      " values are no examples of " + std::to_string(net.inputs));
  }
  if (count == 0 || count > batch_size_max) {
    return absl::InvalidArgumentError("a batch of " + std::to_string(count) +
                                      " examples for a plan of at most " +
                                      std::to_string(batch_size_max));
  }
  if (net.loss == ModelSpec::Loss::kCrossEntropy) {
    if (absl::Status status = CheckLabels(net, batch, count); !status.ok()) return status;
  } else if (batch.targets.size() != count * net.outputs) {
    return absl::InvalidArgumentError(std::to_string(batch.targets.size()) + " targets for " +
                                      std::to_string(count) + " examples and a net of " +
                                      std::to_string(net.outputs) + " outputs");
  }
  return static_cast<uint32_t>(count);
}

}  // namespace slipstream
