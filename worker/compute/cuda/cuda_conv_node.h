#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_CONV_NODE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_CONV_NODE_H_

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/precision.h"
#include "worker/compute/activation.h"
#include "worker/compute/cuda/conv_descriptors.h"
#include "worker/compute/cuda/cuda_node.h"
#include "worker/compute/cuda/device_context.h"
#include "worker/compute/cuda/device_parameters.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream::cuda {

/// A convolution, on cuDNN, and the activation that follows it. The gradient of the bias is our own
/// kernel: cuDNN's runs in one block for each channel, which took 1.4 ms of LeNet-5's step with
/// 1,024 examples on an H200. In a deterministic plan, it uses only those of cuDNN's algorithms
/// that sum the products themselves (not Winograd's and Fourier's, which lose digits) and that give
/// equal bits for equal inputs; it takes cuDNN's first such proposal. Otherwise it measures all
/// algorithms, these included, and takes the fastest, so that even processes on equal machines may
/// choose differently. With bf16, products have tf32 operands: in bf16 cuDNN would also round
/// results, and tf32 has three more bits.
class CudaConvNode final : public CudaNode {
 public:
  struct Options {
    Conv2dShape shape;
    DeviceParameters parameters;
    Activation activation = Activation::kNone;
    Precision precision = Precision::kFp32;
    uint32_t batch_size_max = 1;
    bool deterministic = true;
    bool trains = true;
    bool wants_input_gradient = true;
  };

  /// `context` must outlive the node.
  static absl::StatusOr<std::unique_ptr<CudaNode>> New(const DeviceContext& context,
                                                       const Options& options);

  size_t workspace_bytes() const override;
  absl::Status Prepare(uint32_t count) override;
  absl::Status Forward(const CudaPass& pass, const float* input, float* output) override;
  absl::Status Backward(const CudaPass& pass, const float* input, const float* output,
                        float* output_gradient, float* input_gradient) override;

 private:
  /// An algorithm, and the math units that it was proposed for.
  template <typename Algorithm>
  struct Chosen {
    Algorithm algorithm = {};
    cudnnMathType_t math = CUDNN_FMA_MATH;
  };

  /// Chooses the first of cuDNN's proposals that may be used; with fp32 only on fp32's math units.
  /// Proposals are guesses, so `workspace_of(algorithm, bytes)` asks the library whether it
  /// supports the algorithm on the math units that were set, and how much workspace it needs.
  template <typename Found, typename Algorithm, typename WorkspaceOf>
  absl::Status Choose(std::span<const Found> found, const char* what, WorkspaceOf workspace_of,
                      Chosen<Algorithm>& chosen) const;

  /// Chooses from the proposals of `find(most, count, found)`, fastest first: those for the known
  /// device, or measured ones, which vary.
  template <typename Found, typename Find, typename WorkspaceOf, typename Algorithm>
  absl::Status ChooseFrom(const char* what, Find find, WorkspaceOf workspace_of,
                          Chosen<Algorithm>& chosen) const;

  absl::Status ChooseForward();
  absl::Status ChooseFilterGradient();
  absl::Status ChooseInputGradient();

  /// Sets the math units of the next call.
  absl::Status Use(cudnnMathType_t math) const;

  CudaConvNode(const DeviceContext& context, const Options& options, ConvDescriptors descriptors)
      : context_(context), options_(options), descriptors_(std::move(descriptors)) {}

  const DeviceContext& context_;
  const Options options_;

  ConvDescriptors descriptors_;
  Chosen<cudnnConvolutionFwdAlgo_t> forward_;
  Chosen<cudnnConvolutionBwdFilterAlgo_t> filter_gradient_;
  Chosen<cudnnConvolutionBwdDataAlgo_t> input_gradient_;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_CONV_NODE_H_
