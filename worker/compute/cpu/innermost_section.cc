#include "worker/compute/cpu/innermost_section.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "worker/compute/cpu/innermost_layout.h"

namespace slipstream {
namespace {

// The share of a blocked layout's work on channels that exist, from which on it is preferred. A
// blocked layout computes one register of channels at a time. If channels fill its registers, it is
// up to a quarter faster than these kernels; it is slower as soon as more than about a fifth of its
// work is waste (measured for 1 to 32 channels, kernels of 3 and 5, batches of 16 to 64). oneDNN's
// kernels for AVX2 fill registers with input channels, too: on them LeNet-5, with 1 and 6 input
// channels, takes five times as long, a net with 3 and 16 a third longer, and one with 3 and 32
// equally long (kernels of 5). On the kernels for AVX-512 only output channels count.
constexpr double kBlockFillMax = 0.8;

uint32_t RoundUp(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Returns the share of the work of a blocked layout's convolutions that goes to channels that
// exist.
double BlockFill(std::span<const ImageBlock> blocks, const InnermostKernels& kernels) {
  double work = 0, blocked_work = 0;
  for (const ImageBlock& block : blocks) {
    const auto* conv = std::get_if<ConvBlock>(&block);
    if (conv == nullptr) continue;
    const ExampleShape& output = conv->shape.output;
    const uint32_t inputs = conv->shape.input.channels;
    const double per_pair = static_cast<double>(conv->shape.weights()) / output.channels / inputs *
                            output.height * output.width;
    work += per_pair * inputs * output.channels;
    blocked_work += per_pair * RoundUp(inputs, kernels.blocked_inputs) *
                    RoundUp(output.channels, kernels.lanes);
  }
  return work / blocked_work;
}

}  // namespace

// Adds the step that `block` begins, or adds the pool that `block` is to the last step.
bool InnermostSection::TakesIn(const ImageBlock& block, std::vector<Step>& steps) {
  if (const auto* conv = std::get_if<ConvBlock>(&block)) {
    const Conv2dShape& shape = conv->shape;
    if (shape.stride != 1 || conv->activation == Activation::kTanh) return false;
    steps.push_back({{.in_channels = shape.input.channels,
                      .in_height = shape.input.height,
                      .in_width = shape.input.width,
                      .out_channels = shape.output.channels,
                      .out_height = shape.output.height,
                      .out_width = shape.output.width,
                      .kernel = shape.kernel,
                      .padding = shape.padding,
                      .relu = conv->activation == Activation::kRelu},
                     conv->parameters,
                     {},
                     {},
                     {}});
    return true;
  }
  const auto& pool = std::get<PoolBlock>(block);
  if (steps.empty() || steps.back().shape.window != 1) return false;
  if (pool.shape.kind != PoolLayer::Kind::kMax || pool.shape.kernel != 2 ||
      pool.shape.stride != 2 || pool.activation == Activation::kTanh) {
    return false;
  }
  InnermostShape& shape = steps.back().shape;
  const ExampleShape& pooled = pool.shape.output;
  if (pooled.height * 2 > shape.out_height || pooled.width * 2 > shape.out_width) return false;
  shape.window = 2;
  shape.out_height = pooled.height;
  shape.out_width = pooled.width;
  // ReLU and maximum commute.
  shape.relu = shape.relu || pool.activation == Activation::kRelu;
  return true;
}

std::unique_ptr<InnermostSection> InnermostSection::TryMake(std::span<const ImageBlock> blocks,
                                                            const InnermostKernels& kernels,
                                                            bool trains) {
  std::vector<Step> steps;
  for (const ImageBlock& block : blocks) {
    if (!TakesIn(block, steps)) return nullptr;
  }
  if (steps.empty() || BlockFill(blocks, kernels) > kBlockFillMax) return nullptr;
  return std::unique_ptr<InnermostSection>(new InnermostSection(std::move(steps), kernels, trains));
}

std::vector<InnermostSection::Group> InnermostSection::Groups(uint32_t count) const {
  std::vector<Group> groups;
  for (uint32_t first = 0; first < count; first += InnermostKernels::kImagesMax) {
    const uint32_t examples = std::min(count - first, InnermostKernels::kImagesMax);
    groups.push_back({first, examples, RoundUp(examples, kernels_.lanes)});
  }
  return groups;
}

void InnermostSection::Prepare(uint32_t count) {
  const uint32_t images = RoundUp(count, kernels_.lanes);
  if (images <= images_) return;
  const uint32_t group = std::min(images, InnermostKernels::kImagesMax);
  size_t conv_outputs = 0;
  for (Step& step : steps_) {
    step.outputs = AlignedBuffer<float>(step.shape.outputs() * images);
    step.winners = AlignedBuffer<uint8_t>(step.shape.outputs() * images);
    if (trains_) step.gradients = AlignedBuffer<float>(step.shape.outputs() * images);
    conv_outputs = std::max(conv_outputs, step.shape.conv_outputs());
  }
  const size_t inputs = steps_.front().shape.inputs();
  inputs_ = AlignedBuffer<float>(inputs * images);
  if (trains_) input_gradients_ = AlignedBuffer<float>(inputs * group);
  if (trains_) conv_gradient_ = AlignedBuffer<float>(conv_outputs * group);
  images_ = images;
}

void InnermostSection::Forward(const Pass& pass, const float* input, float* output) {
  const size_t inputs = steps_.front().shape.inputs();
  const size_t outputs = steps_.back().shape.outputs();
  for (const Group& group : Groups(pass.count)) {
    float* values = inputs_.data() + inputs * group.first;
    ToInnermost({input + inputs * group.first, group.count, inputs}, group.images, values);
    for (Step& step : steps_) {
      const size_t begin = step.shape.outputs() * group.first;
      kernels_.forward(step.shape, group.images, values, pass.weights + step.parameters.weight,
                       pass.weights + step.parameters.bias, step.outputs.data() + begin,
                       step.winners.data() + begin);
      values = step.outputs.data() + begin;
    }
    FromInnermost(values, group.images, {output + outputs * group.first, group.count, outputs});
  }
}

void InnermostSection::Backward(const Pass& pass, const float*, const float*,
                                float* output_gradient, float* input_gradient) {
  Step& last = steps_.back();
  const size_t outputs = last.shape.outputs();
  for (const Group& group : Groups(pass.count)) {
    ToInnermost({output_gradient + outputs * group.first, group.count, outputs}, group.images,
                last.gradients.data() + outputs * group.first);
  }
  for (size_t i = steps_.size(); i-- > 0;) BackwardOfStep(pass, i, input_gradient);
}

void InnermostSection::BackwardOfStep(const Pass& pass, size_t index, float* input_gradient) {
  Step& step = steps_[index];
  const LayerParameters& parameters = step.parameters;
  for (const Group& group : Groups(pass.count)) {
    const bool first = group.first == 0;
    const size_t out = step.shape.outputs() * group.first;
    const size_t in = step.shape.inputs() * group.first;
    const float* input = (index == 0 ? inputs_ : steps_[index - 1].outputs).data() + in;
    kernels_.spread_gradient(step.shape, group.images, step.gradients.data() + out,
                             step.winners.data() + out, conv_gradient_.data(), first,
                             pass.gradients + parameters.bias);
    kernels_.weight_gradient(step.shape, group.images, input, conv_gradient_.data(), first,
                             pass.gradients + parameters.weight);
    if (index > 0) {
      kernels_.input_gradient(step.shape, group.images, pass.weights + parameters.weight,
                              conv_gradient_.data(), steps_[index - 1].gradients.data() + in);
    } else if (input_gradient != nullptr) {
      kernels_.input_gradient(step.shape, group.images, pass.weights + parameters.weight,
                              conv_gradient_.data(), input_gradients_.data());
      FromInnermost(input_gradients_.data(), group.images,
                    {input_gradient + in, group.count, step.shape.inputs()});
    }
  }
  pass.GradientReady(parameters.range());
}

}  // namespace slipstream
