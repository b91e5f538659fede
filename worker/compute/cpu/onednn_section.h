#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_SECTION_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_SECTION_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "worker/compute/cpu/image_block.h"
#include "worker/compute/cpu/node.h"
#include "worker/compute/cpu/onednn_program.h"

namespace slipstream {

/// A run of convolutions and pools on oneDNN's blocked kernels: the choice where channels fill
/// blocks.
///
/// Primitives are made for one batch size, in some milliseconds; a run needs few sizes (its own,
/// the rest of an epoch, the evaluation's), whose programs are kept.
class OneDnnSection final : public Node {
 public:
  static constexpr size_t kProgramsMax = 4;

  OneDnnSection(std::vector<ImageBlock> blocks, bool trains, bool wants_input_gradient)
      : blocks_(std::move(blocks)), trains_(trains), wants_input_gradient_(wants_input_gradient) {}

  void Prepare(uint32_t count) override;
  void Forward(const Pass& pass, const float* input, float* output) override;
  void Backward(const Pass& pass, const float* input, const float* output, float* output_gradient,
                float* input_gradient) override;

 private:
  struct Program {
    uint32_t count = 0;
    std::unique_ptr<OneDnnProgram> program;
  };

  // Constant after construction.
  const std::vector<ImageBlock> blocks_;
  const bool trains_;
  const bool wants_input_gradient_;
  const dnnl::engine engine_{dnnl::engine::kind::cpu, 0};

  dnnl::stream stream_{engine_};
  std::list<Program> programs_;  // The one prepared last comes first.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_SECTION_H_
