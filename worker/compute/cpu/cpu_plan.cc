#include "worker/compute/cpu/cpu_plan.h"

#include <algorithm>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "worker/compute/cpu/losses.h"
#include "worker/compute/cpu/one_thread.h"

namespace slipstream {
namespace {

size_t LargestOutput(const std::vector<ChosenNode>& nodes) {
  size_t largest = 0;
  for (const ChosenNode& node : nodes) largest = std::max(largest, node.outputs);
  return largest;
}

}  // namespace

CpuPlan::CpuPlan(const NetSizes& net, std::vector<ChosenNode> nodes, const PlanOptions& options)
    : net_(net),
      options_(options),
      nodes_(std::move(nodes)),
      weights_(net.parameters),
      gate_(net.parameters) {
  PS_CHECK(!nodes_.empty() && nodes_.back().outputs == net.outputs);
  const size_t count = options.batch_size_max;
  for (const ChosenNode& node : nodes_) {
    outputs_.emplace_back(count * node.outputs);
    node.node->Prepare(options.batch_size_max);
  }
  if (!options.trains) return;
  gradients_ = options.gradients;
  if (gradients_.empty()) {
    own_gradients_ = AlignedBuffer<float>(net.parameters);
    gradients_ = own_gradients_.span();
  }
  PS_CHECK(gradients_.size() == net.parameters);
  for (AlignedBuffer<float>& gradients : output_gradients_) {
    gradients = AlignedBuffer<float>(count * LargestOutput(nodes_));
  }
}

size_t CpuPlan::BytesAtLeast(const NetShapes& shapes, const PlanOptions& options) {
  size_t values = shapes.layout.parameters() * (options.trains ? 2 : 1);
  for (const ExampleShape& shape : shapes.shapes) {
    values += shape.elements() * options.batch_size_max;
  }
  return values * sizeof(float);
}

absl::Status CpuPlan::StartStep(const Batch& batch, GradientListener* listener) {
  if (!options_.trains) return absl::FailedPreconditionError("the plan only evaluates");
  const absl::StatusOr<uint32_t> count = CheckBatch(net_, options_.batch_size_max, batch);
  if (!count.ok()) return count.status();
  gate_.Enter();
  absl::StatusOr<StepResult> result = Step(batch, *count, listener);
  const bool may_have_mixed = !gate_.Leave();
  if (may_have_mixed) return absl::CancelledError("the weights were replaced");
  if (!result.ok()) return result.status();
  started_ = *result;
  return absl::OkStatus();
}

absl::StatusOr<StepResult> CpuPlan::Step(const Batch& batch, uint32_t count,
                                         GradientListener* listener) {
  const Pass pass = {.count = count,
                     .batch_index = batch.index,
                     .training = true,
                     .weights = weights_.data(),
                     .gradients = gradients_.data(),
                     .listener = listener};
  const OneThreadScope one_thread;
  try {
    const float* outputs = Forward(pass, batch.examples.data());
    // Wait also for weights that no layer reads, if there are any: only then may the gradient be
    // written.
    if (outputs == nullptr || !gate_.Await({0, net_.parameters})) {
      return absl::CancelledError("the weights did not come");
    }
    StepResult result = Loss(batch, pass, outputs);
    result.forward_end = absl::Now();
    result.waited = gate_.waited();
    Backward(pass, batch.examples.data());
    return result;
  } catch (const dnnl::error& error) {
    return absl::InternalError(std::string("oneDNN: ") + error.what());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for a batch of another size");
  }
}

absl::StatusOr<StepResult> CpuPlan::FinishStep() {
  if (!started_.has_value()) return absl::FailedPreconditionError("no step was started");
  return *std::exchange(started_, std::nullopt);
}

absl::StatusOr<StepResult> CpuPlan::Evaluate(const Batch& batch) {
  const absl::StatusOr<uint32_t> count = CheckBatch(net_, options_.batch_size_max, batch);
  if (!count.ok()) return count.status();
  const Pass pass = {.count = *count, .weights = weights_.data()};
  const OneThreadScope one_thread;
  try {
    return Loss(batch, pass, Forward(pass, batch.examples.data()));
  } catch (const dnnl::error& error) {
    return absl::InternalError(std::string("oneDNN: ") + error.what());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for a batch of another size");
  }
}

const float* CpuPlan::Forward(const Pass& pass, const float* examples) {
  const float* input = examples;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].node->Prepare(pass.count);
    if (pass.training && !gate_.Await(nodes_[i].parameters)) return nullptr;
    nodes_[i].node->Forward(pass, input, outputs_[i].data());
    input = outputs_[i].data();
  }
  return input;
}

StepResult CpuPlan::Loss(const Batch& batch, const Pass& pass, const float* outputs) {
  const size_t values = size_t{pass.count} * net_.outputs;
  std::span<float> gradient;
  if (pass.training) gradient = output_gradients_[0].span().first(values);
  switch (net_.loss) {
    case ModelSpec::Loss::kCrossEntropy:
      return SoftmaxCrossEntropy({outputs, values}, batch.labels, net_.outputs, gradient);
    case ModelSpec::Loss::kMse:
      return MeanSquaredError({outputs, values}, batch.targets, gradient);
  }
  PS_CHECK(false);
  return {};
}

void CpuPlan::Backward(const Pass& pass, const float* examples) {
  float* output_gradient = output_gradients_[0].data();
  float* input_gradient = output_gradients_[1].data();
  for (size_t i = nodes_.size(); i-- > 0;) {
    const float* input = i == 0 ? examples : outputs_[i - 1].data();
    nodes_[i].node->Backward(pass, input, outputs_[i].data(), output_gradient,
                             i == 0 ? nullptr : input_gradient);
    std::swap(output_gradient, input_gradient);
  }
}

}  // namespace slipstream
