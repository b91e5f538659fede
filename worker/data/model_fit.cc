#include "worker/data/model_fit.h"

#include <fmt/format.h>

namespace slipstream {
namespace {

absl::Status FitShape(const ExampleShape& input, Dataset& dataset) {
  const ExampleShape& shape = dataset.shape;
  const bool is_flat = shape.height == 1 && shape.width == 1;
  if (is_flat && shape.elements() == input.elements()) dataset.shape = input;
  if (shape == input) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the examples of the data are {} ({} values), and the model's input is {} ({} "
                  "values); change model.input or the data",
                  ToText(shape), shape.elements(), ToText(input), input.elements()));
}

absl::Status FitOutputs(const NetShapes& net, const Dataset& dataset) {
  if (dataset.is_labelled()) {
    if (dataset.outputs <= net.outputs()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("the labels of the data go up to {}, and the model's last layer has outputs "
                    "for the classes 0 to {}; give it {} units",
                    dataset.outputs - 1, net.outputs() - 1, dataset.outputs));
  }
  if (dataset.outputs == net.outputs()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "the data have targets of {} value{}, and the model's last layer has {} output{}; give it {} "
      "units",
      dataset.outputs, dataset.outputs == 1 ? "" : "s", net.outputs(),
      net.outputs() == 1 ? "" : "s", dataset.outputs));
}

}  // namespace

absl::Status FitToModel(const NetShapes& net, DataSplits& data) {
  const absl::Status train = FitToModel(net, data.train);
  return train.ok() ? FitToModel(net, data.test) : train;
}

absl::Status FitToModel(const NetShapes& net, Dataset& data) {
  const absl::Status shape = FitShape(net.input(), data);
  return shape.ok() ? FitOutputs(net, data) : shape;
}

}  // namespace slipstream
