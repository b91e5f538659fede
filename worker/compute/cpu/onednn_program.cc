#include "worker/compute/cpu/onednn_program.h"

#include <utility>
#include <variant>

#include "common/base/check.h"

namespace slipstream {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using Tag = memory::format_tag;

memory::desc Plain(const memory::dims& dims, Tag tag) {
  return memory::desc(dims, memory::data_type::f32, tag);
}

// For derivatives that are computed from the results, oneDNN has other algorithm names.
algorithm ForwardAlgorithm(Activation activation) {
  return activation == Activation::kRelu ? algorithm::eltwise_relu : algorithm::eltwise_tanh;
}
algorithm BackwardAlgorithm(Activation activation) {
  return activation == Activation::kRelu ? algorithm::eltwise_relu_use_dst_for_bwd
                                         : algorithm::eltwise_tanh_use_dst_for_bwd;
}

struct ConvDims {
  memory::dims weight, bias, strides, padding;
};

ConvDims DimsOf(const Conv2dShape& shape) {
  return {{shape.output.channels, shape.input.channels, shape.kernel, shape.kernel},
          {shape.output.channels},
          {shape.stride, shape.stride},
          {shape.padding, shape.padding}};
}

struct PoolDims {
  memory::dims kernel, strides, before, after;
};

// Returns the padding that the last window needs beyond the input; only a partial window needs any.
memory::dim PaddingAfter(uint32_t input, uint32_t output, const PoolShape& shape) {
  const memory::dim end = memory::dim{output - 1} * shape.stride + shape.kernel;
  return end > input ? end - input : 0;
}

PoolDims DimsOf(const PoolShape& shape) {
  return {{shape.kernel, shape.kernel},
          {shape.stride, shape.stride},
          {0, 0},
          {PaddingAfter(shape.input.height, shape.output.height, shape),
           PaddingAfter(shape.input.width, shape.output.width, shape)}};
}

algorithm AlgorithmOf(const PoolShape& shape) {
  return shape.kind == PoolLayer::Kind::kMax ? algorithm::pooling_max
                                             : algorithm::pooling_avg_exclude_padding;
}

const ExampleShape& InputOf(const ImageBlock& block) {
  return std::visit([](const auto& b) -> const ExampleShape& { return b.shape.input; }, block);
}
const ExampleShape& OutputOf(const ImageBlock& block) {
  return std::visit([](const auto& b) -> const ExampleShape& { return b.shape.output; }, block);
}

}  // namespace

OneDnnProgram::OneDnnProgram(const dnnl::engine& engine, const std::vector<ImageBlock>& blocks,
                             const Options& options)
    : engine_(engine), count_(options.count), operand_type_(options.operand_type) {
  PS_CHECK(!blocks.empty());
  input_ = memory(Plain(Images(InputOf(blocks.front())), Tag::nchw), engine_, nullptr);
  output_ = memory(Plain(Images(OutputOf(blocks.back())), Tag::nchw), engine_, nullptr);
  memory current = input_;
  for (const ImageBlock& block : blocks) {
    current = std::visit([&](const auto& b) { return AddForward(b, current); }, block);
  }
  forward_.AddReorder(current, output_);
  if (options.trains) AddBackwards(blocks, current, options.wants_input_gradient);
}

memory OneDnnProgram::AddForward(const ConvBlock& block, const memory& source) {
  const ConvDims dims = DimsOf(block.shape);
  dnnl::primitive_attr attributes;
  if (block.activation != Activation::kNone) {
    dnnl::post_ops after;
    after.append_eltwise(1.0f, ForwardAlgorithm(block.activation), 0.0f, 0.0f);
    attributes.set_post_ops(after);
  }
  const dnnl::convolution_forward::primitive_desc description(
      {prop_kind::forward_training, algorithm::convolution_direct, Any(Images(block.shape.input)),
       Any(dims.weight), Plain(dims.bias, Tag::a), Any(Images(block.shape.output)), dims.strides,
       dims.padding, dims.padding},
      attributes, engine_);
  const memory plain_weight =
      Bind(weights_, Plain(dims.weight, Tag::oihw), block.parameters.weight).memory;
  const memory bias = Bind(weights_, Plain(dims.bias, Tag::a), block.parameters.bias).memory;
  const memory converted = forward_.Converted(source, description.src_desc());
  const memory weight = forward_.Converted(plain_weight, description.weights_desc());
  const memory result(description.dst_desc(), engine_);
  forward_.Add(dnnl::convolution_forward(description), {{DNNL_ARG_SRC, converted},
                                                        {DNNL_ARG_WEIGHTS, weight},
                                                        {DNNL_ARG_BIAS, bias},
                                                        {DNNL_ARG_DST, result}});
  forwards_.push_back(ConvForward{description, converted, plain_weight, result});
  return result;
}

memory OneDnnProgram::AddForward(const PoolBlock& block, const memory& source) {
  const PoolDims dims = DimsOf(block.shape);
  const dnnl::pooling_forward::primitive_desc description(
      {prop_kind::forward_training, AlgorithmOf(block.shape), source.get_desc(),
       Any(Images(block.shape.output)), dims.strides, dims.kernel, dims.before, dims.after},
      engine_);
  const memory result(description.dst_desc(), engine_);
  PoolForward forward = {description, source, result, std::nullopt};
  OneDnnCalls::Arguments arguments = {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, result}};
  if (block.shape.kind == PoolLayer::Kind::kMax) {
    forward.winners.emplace(description.workspace_desc(), engine_);
    arguments.emplace(DNNL_ARG_WORKSPACE, *forward.winners);
  }
  forward_.Add(dnnl::pooling_forward(description), std::move(arguments));
  forwards_.push_back(std::move(forward));
  if (block.activation != Activation::kNone) {
    const dnnl::eltwise_forward::primitive_desc activation(
        {prop_kind::forward_training, ForwardAlgorithm(block.activation), result.get_desc(), 0.0f,
         0.0f},
        engine_);
    forward_.Add(dnnl::eltwise_forward(activation),
                 {{DNNL_ARG_SRC, result}, {DNNL_ARG_DST, result}});
  }
  return result;
}

void OneDnnProgram::AddBackwards(const std::vector<ImageBlock>& blocks, const memory& result,
                                 bool wants_input_gradient) {
  output_gradient_ = memory(output_.get_desc(), engine_, nullptr);
  backward_.emplace_back();
  std::optional<memory> gradient =
      backward_.back().calls.Converted(output_gradient_, result.get_desc());
  for (size_t i = blocks.size(); i-- > 0;) {
    const bool wants_source_gradient = i > 0 || wants_input_gradient;
    if (const auto* conv = std::get_if<ConvBlock>(&blocks[i])) {
      gradient =
          AddBackward(*conv, std::get<ConvForward>(forwards_[i]), *gradient, wants_source_gradient);
    } else {
      gradient = AddBackward(std::get<PoolBlock>(blocks[i]), std::get<PoolForward>(forwards_[i]),
                             *gradient, wants_source_gradient);
    }
  }
  if (!wants_input_gradient) return;
  input_gradient_ = memory(input_.get_desc(), engine_, nullptr);
  backward_.back().calls.AddReorder(*gradient, input_gradient_);
}

std::optional<memory> OneDnnProgram::AddBackward(const ConvBlock& block, const ConvForward& forward,
                                                 memory gradient, bool wants_source_gradient) {
  gradient = backward_.back().calls.Converted(gradient, forward.result.get_desc());
  AddActivationBackward(block.activation, forward.result, gradient, backward_.back());
  AddWeightGradient(block, forward, gradient);
  backward_.back().ready = block.parameters.range();
  backward_.emplace_back();
  if (!wants_source_gradient) return std::nullopt;

  const ConvDims dims = DimsOf(block.shape);
  const dnnl::convolution_backward_data::primitive_desc description(
      {algorithm::convolution_direct, Any(Images(block.shape.input)), Any(dims.weight),
       Any(Images(block.shape.output)), dims.strides, dims.padding, dims.padding},
      engine_, forward.description);
  OneDnnCalls& calls = backward_.back().calls;
  const memory weight = calls.Converted(forward.weight, description.weights_desc());
  const memory converted = calls.Converted(gradient, description.diff_dst_desc());
  const memory source_gradient(description.diff_src_desc(), engine_);
  calls.Add(dnnl::convolution_backward_data(description), {{DNNL_ARG_DIFF_DST, converted},
                                                           {DNNL_ARG_WEIGHTS, weight},
                                                           {DNNL_ARG_DIFF_SRC, source_gradient}});
  return source_gradient;
}

void OneDnnProgram::AddWeightGradient(const ConvBlock& block, const ConvForward& forward,
                                      const memory& gradient) {
  const ConvDims dims = DimsOf(block.shape);
  const dnnl::convolution_backward_weights::primitive_desc description(
      {algorithm::convolution_direct, Any(Images(block.shape.input)), Plain(dims.weight, Tag::any),
       Plain(dims.bias, Tag::a), Any(Images(block.shape.output)), dims.strides, dims.padding,
       dims.padding},
      engine_, forward.description);
  OneDnnCalls& calls = backward_.back().calls;
  const memory source = calls.Converted(forward.source, description.src_desc());
  const memory converted = calls.Converted(gradient, description.diff_dst_desc());
  const memory plain =
      Bind(gradients_, Plain(dims.weight, Tag::oihw), block.parameters.weight).memory;
  const memory bias = Bind(gradients_, Plain(dims.bias, Tag::a), block.parameters.bias).memory;
  const bool is_plain = description.diff_weights_desc() == plain.get_desc();
  const memory weight = is_plain ? plain : memory(description.diff_weights_desc(), engine_);
  calls.Add(dnnl::convolution_backward_weights(description), {{DNNL_ARG_SRC, source},
                                                              {DNNL_ARG_DIFF_DST, converted},
                                                              {DNNL_ARG_DIFF_WEIGHTS, weight},
                                                              {DNNL_ARG_DIFF_BIAS, bias}});
  if (!is_plain) calls.AddReorder(weight, plain);
}

std::optional<memory> OneDnnProgram::AddBackward(const PoolBlock& block, const PoolForward& forward,
                                                 memory gradient, bool wants_source_gradient) {
  if (!wants_source_gradient) return std::nullopt;
  OneDnnCalls& calls = backward_.back().calls;
  gradient = calls.Converted(gradient, forward.result.get_desc());
  AddActivationBackward(block.activation, forward.result, gradient, backward_.back());
  const PoolDims dims = DimsOf(block.shape);
  const dnnl::pooling_backward::primitive_desc description(
      {AlgorithmOf(block.shape), forward.source.get_desc(), gradient.get_desc(), dims.strides,
       dims.kernel, dims.before, dims.after},
      engine_, forward.description);
  const memory source_gradient(forward.source.get_desc(), engine_);
  OneDnnCalls::Arguments arguments = {{DNNL_ARG_DIFF_DST, gradient},
                                      {DNNL_ARG_DIFF_SRC, source_gradient}};
  if (forward.winners) arguments.emplace(DNNL_ARG_WORKSPACE, *forward.winners);
  calls.Add(dnnl::pooling_backward(description), std::move(arguments));
  return source_gradient;
}

void OneDnnProgram::AddActivationBackward(Activation activation, const memory& result,
                                          const memory& gradient, Stage& stage) {
  if (activation == Activation::kNone) return;
  const algorithm derivative = BackwardAlgorithm(activation);
  const dnnl::eltwise_forward::primitive_desc forward(
      {prop_kind::forward_training, derivative, result.get_desc(), 0.0f, 0.0f}, engine_);
  const dnnl::eltwise_backward::primitive_desc description(
      {derivative, gradient.get_desc(), result.get_desc(), 0.0f, 0.0f}, engine_, forward);
  stage.calls.Add(
      dnnl::eltwise_backward(description),
      {{DNNL_ARG_DST, result}, {DNNL_ARG_DIFF_DST, gradient}, {DNNL_ARG_DIFF_SRC, gradient}});
}

OneDnnProgram::Bound& OneDnnProgram::Bind(std::vector<Bound>& arena,
                                          const memory::desc& description, size_t offset) {
  return arena.emplace_back(Bound{memory(description, engine_, nullptr), offset});
}

memory::desc OneDnnProgram::Any(const memory::dims& dims) const {
  return memory::desc(dims, operand_type_, Tag::any);
}

memory::dims OneDnnProgram::Images(const ExampleShape& shape) const {
  return {count_, shape.channels, shape.height, shape.width};
}

void OneDnnProgram::Forward(dnnl::stream& stream, const Pass& pass, const float* input,
                            float* output) {
  // oneDNN's memory objects have no const; forward only reads these.
  input_.set_data_handle(const_cast<float*>(input));
  output_.set_data_handle(output);
  for (Bound& weight : weights_) {
    weight.memory.set_data_handle(const_cast<float*>(pass.weights) + weight.offset);
  }
  forward_.Run(stream);
}

void OneDnnProgram::Backward(dnnl::stream& stream, const Pass& pass, float* output_gradient,
                             float* input_gradient) {
  output_gradient_.set_data_handle(output_gradient);
  if (input_gradient_) input_gradient_.set_data_handle(input_gradient);
  for (Bound& gradient : gradients_) {
    gradient.memory.set_data_handle(pass.gradients + gradient.offset);
  }
  for (const Stage& stage : backward_) {
    stage.calls.Run(stream);
    if (stage.ready) pass.GradientReady(*stage.ready);
  }
}

}  // namespace slipstream
