#include "worker/compute/batch_check.h"

#include <algorithm>
#include <span>
#include <string>

namespace slipstream {
namespace {

absl::Status CheckLabels(const NetSizes& net, std::span<const uint32_t> labels, size_t count) {
  if (labels.size() != count) {
    return absl::InvalidArgumentError(std::to_string(labels.size()) + " labels for " +
                                      std::to_string(count) + " examples");
  }
  const uint32_t largest = count == 0 ? 0 : std::ranges::max(labels);
  if (largest >= net.outputs) {
    return absl::InvalidArgumentError("class " + std::to_string(largest) + " for a net of " +
                                      std::to_string(net.outputs) + " classes");
  }
  return absl::OkStatus();
}

absl::Status CheckRows(std::span<const uint32_t> rows, size_t kept) {
  const uint32_t largest = std::ranges::max(rows);
  if (largest < kept) return absl::OkStatus();
  return absl::InvalidArgumentError("example " + std::to_string(largest) +
                                    " of a plan that keeps " + std::to_string(kept));
}

/// Returns the number of examples that have `values` values.
absl::StatusOr<size_t> CheckExamples(const NetSizes& net, size_t values,
                                     std::span<const uint32_t> labels,
                                     std::span<const float> targets) {
  const size_t count = values / net.inputs;
  if (values != count * net.inputs) {
    return absl::InvalidArgumentError(std::to_string(values) + " values are no examples of " +
                                      std::to_string(net.inputs));
  }
  if (net.loss == ModelSpec::Loss::kCrossEntropy) {
    if (absl::Status status = CheckLabels(net, labels, count); !status.ok()) return status;
  } else if (targets.size() != count * net.outputs) {
    return absl::InvalidArgumentError(std::to_string(targets.size()) + " targets for " +
                                      std::to_string(count) + " examples and a net of " +
                                      std::to_string(net.outputs) + " outputs");
  }
  return count;
}

}  // namespace

NetSizes NetSizes::Of(const ModelSpec& model, const NetShapes& shapes) {
  return {shapes.layout.parameters(), shapes.input().elements(), shapes.outputs(), model.loss};
}

absl::StatusOr<size_t> CheckTable(const NetSizes& net, const ExampleTable& table) {
  return CheckExamples(net, table.values, table.labels, table.targets);
}

absl::StatusOr<uint32_t> CheckBatch(const NetSizes& net, uint32_t batch_size_max,
                                    const Batch& batch, size_t kept) {
  const absl::Status status =
      batch.rows.empty()
          ? CheckExamples(net, batch.examples.size(), batch.labels, batch.targets).status()
          : CheckRows(batch.rows, kept);
  if (!status.ok()) return status;
  const size_t count = batch.CountOf(net.inputs);
  if (count == 0 || count > batch_size_max) {
    return absl::InvalidArgumentError("a batch of " + std::to_string(count) +
                                      " examples for a plan of at most " +
                                      std::to_string(batch_size_max));
  }
  return static_cast<uint32_t>(count);
}

}  // namespace slipstream
