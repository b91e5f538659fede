#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_INNERMOST_KERNELS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_INNERMOST_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slipstream {

/// A convolution with stride 1, its bias, and optionally ReLU and a 2 × 2 maximum pool of stride 2,
/// computed as one step over a group of images.
struct InnermostShape {
  uint32_t in_channels = 0;
  uint32_t in_height = 0;
  uint32_t in_width = 0;
  uint32_t out_channels = 0;
  uint32_t out_height = 0;  // Size after the pool.
  uint32_t out_width = 0;
  uint32_t kernel = 0;
  uint32_t padding = 0;
  uint32_t window = 1;  // Side of the pool's window; 1 means no pool.
  bool relu = false;

  // The size of the part of the convolution's output that the pool uses.
  uint32_t conv_height() const { return out_height * window; }
  uint32_t conv_width() const { return out_width * window; }

  size_t inputs() const { return size_t{in_channels} * in_height * in_width; }
  size_t outputs() const { return size_t{out_channels} * out_height * out_width; }
  size_t conv_outputs() const { return outputs() * window * window; }
};

/// Kernels for arrays in which the image is the innermost index: channel, row, column, image. A
/// vector register holds one pixel of several images, so any kernel size, padding and number of
/// channels runs at full width, whereas blocked layouts waste width on channels that do not exist.
/// Weights are plain [out, in, kernel, kernel], broadcast one value at a time.
///
/// `images` is a multiple of `lanes` and at most kImagesMax. Surplus images are zero at the input,
/// and their gradients are zero at the output, so they add nothing to any sum. All arrays of images
/// are 64-byte aligned.
///
/// The kernels of different instruction sets round differently: they use fused multiply-adds and
/// sum in an order that depends on their width.
struct InnermostKernels {
  static constexpr uint32_t kImagesMax = 64;

  /// The entry in `winners` of an output that ReLU turned off.
  static constexpr uint8_t kNoWinner = 255;

  const char* name;
  uint32_t lanes;

  /// How many input channels the blocked kernels for the same instructions compute at a time,
  /// whether they exist or not; see innermost_section.cc.
  uint32_t blocked_inputs;

  /// Computes the outputs. `winners` receives, for each output, the position in its window that it
  /// came from.
  void (*forward)(const InnermostShape& shape, uint32_t images, const float* input,
                  const float* weight, const float* bias, float* output, uint8_t* winners);

  /// Undoes pool and ReLU: computes the gradient of the convolution's output, and the gradient of
  /// the bias, which is written if `first` and added to otherwise.
  void (*spread_gradient)(const InnermostShape& shape, uint32_t images,
                          const float* output_gradient, const uint8_t* winners,
                          float* conv_gradient, bool first, float* bias_gradient);

  /// Computes the gradient of the weights, which is written if `first` and added to otherwise.
  void (*weight_gradient)(const InnermostShape& shape, uint32_t images, const float* input,
                          const float* conv_gradient, bool first, float* weight_gradient);

  void (*input_gradient)(const InnermostShape& shape, uint32_t images, const float* weight,
                         const float* conv_gradient, float* input_gradient);
};

/// Returns the kernels that this processor can run, the best first.
std::vector<const InnermostKernels*> AvailableInnermostKernels();

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_INNERMOST_KERNELS_H_
