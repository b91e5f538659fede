#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_SECTION_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_SECTION_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

#include "worker/compute/batch_programs.h"
#include "worker/compute/cpu/image_block.h"
#include "worker/compute/cpu/node.h"
#include "worker/compute/cpu/onednn_program.h"

namespace slipstream {

/// Consecutive convolutions and pools on oneDNN's blocked kernels, which suit channels that fill
/// whole blocks.
class OneDnnSection final : public Node {
 public:
  /// All of `options` counts except the number of examples.
  OneDnnSection(std::vector<ImageBlock> blocks, const OneDnnProgram::Options& options)
      : blocks_(std::move(blocks)), options_(options) {}

  void Prepare(uint32_t count) override;
  void Forward(const Pass& pass, const float* input, float* output) override;
  void Backward(const Pass& pass, const float* input, const float* output, float* output_gradient,
                float* input_gradient) override;

 private:
  // Constant after construction.
  const std::vector<ImageBlock> blocks_;
  const OneDnnProgram::Options options_;
  const dnnl::engine engine_{dnnl::engine::kind::cpu, 0};

  dnnl::stream stream_{engine_};
  BatchPrograms<OneDnnProgram> programs_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_SECTION_H_
