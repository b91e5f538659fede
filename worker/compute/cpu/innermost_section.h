#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_INNERMOST_SECTION_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_INNERMOST_SECTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/memory/aligned_buffer.h"
#include "worker/compute/cpu/image_block.h"
#include "worker/compute/cpu/innermost_kernels.h"
#include "worker/compute/cpu/node.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream {

/// Consecutive convolutions with few channels, each with its bias, ReLU and pool, on kernels for
/// arrays in which the image is the innermost index.
///
/// The batch is cut into groups of images that are computed one after another, and gradients are
/// summed in that order. The cut depends only on the number of examples.
class InnermostSection final : public Node {
 public:
  /// Makes the section for `blocks`; nullptr if these kernels cannot compute one of them, or if a
  /// blocked layout suits their channels better.
  static std::unique_ptr<InnermostSection> TryMake(std::span<const ImageBlock> blocks,
                                                   const InnermostKernels& kernels, bool trains);

  void Prepare(uint32_t count) override;
  void Forward(const Pass& pass, const float* input, float* output) override;
  void Backward(const Pass& pass, const float* input, const float* output, float* output_gradient,
                float* input_gradient) override;

 private:
  struct Step {
    InnermostShape shape;
    LayerParameters parameters;

    // The groups one after another, each [channel, row, column, image]. `gradients` are those of
    // the outputs.
    AlignedBuffer<float> outputs;
    AlignedBuffer<float> gradients;
    AlignedBuffer<uint8_t> winners;
  };

  /// The images of one group. Its last register of `lanes` images is filled up.
  struct Group {
    uint32_t first = 0;   // First example; also the images of earlier groups.
    uint32_t count = 0;   // Examples.
    uint32_t images = 0;  // Rounded up to whole registers.
  };

  InnermostSection(std::vector<Step> steps, const InnermostKernels& kernels, bool trains)
      : steps_(std::move(steps)), kernels_(kernels), trains_(trains) {}

  static bool TakesIn(const ImageBlock& block, std::vector<Step>& steps);

  std::vector<Group> Groups(uint32_t count) const;
  // `input_gradient` is the input gradient of the section.
  void BackwardOfStep(const Pass& pass, size_t index, float* input_gradient);

  // Constant after construction, except the steps' values.
  std::vector<Step> steps_;
  const InnermostKernels& kernels_;
  const bool trains_;

  uint32_t images_ = 0;  // Images that the buffers have room for.
  AlignedBuffer<float> inputs_;
  AlignedBuffer<float> input_gradients_;
  AlignedBuffer<float> conv_gradient_;  // For one group and step.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_INNERMOST_SECTION_H_
