#include "worker/compute/cuda/batch_block.h"

#include "common/model/model_spec.h"
#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/pass_block.h"

namespace slipstream::cuda {
namespace {

constexpr size_t kAlignment = 256;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

BatchBlock BatchBlock::For(const NetSizes& net, uint32_t batch_size_max) {
  BatchBlock block;
  block.answer_bytes =
      net.loss == ModelSpec::Loss::kCrossEntropy ? sizeof(uint32_t) : net.outputs * sizeof(float);
  block.example_bytes = net.inputs * sizeof(float);
  block.rows = Aligned(sizeof(PassInputs));
  block.answers = Aligned(block.rows + batch_size_max * sizeof(uint32_t));
  block.examples = Aligned(block.answers + batch_size_max * block.answer_bytes);
  block.end = block.BytesOf(batch_size_max);
  return block;
}

BatchSpace BatchBlock::SpaceAt(std::byte* block, uint32_t count, const NetSizes& net) const {
  BatchSpace space;
  space.examples = {reinterpret_cast<float*>(block + examples), count * net.inputs};
  if (net.loss == ModelSpec::Loss::kCrossEntropy) {
    space.labels = {reinterpret_cast<uint32_t*>(block + answers), count};
  } else {
    space.targets = {reinterpret_cast<float*>(block + answers), size_t{count} * net.outputs};
  }
  return space;
}

absl::Status CopyPart(const BatchPart& part, const PlacedBlock& from, const PlacedBlock& to,
                      cudaMemcpyKind kind, cudaStream_t stream) {
  if (part.count == 0) return absl::OkStatus();
  const BatchBlock& block = from.block;
  const std::byte* const answers = from.memory + block.answers;
  if (part.begin == 0 && block == to.block) {  // One copy, including the gap in between.
    return PS_CUDA_STATUS(cudaMemcpyAsync(to.memory + block.answers, answers,
                                          block.BytesOf(part.count) - block.answers, kind, stream));
  }
  PS_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(to.memory + to.block.answers,
                                          answers + part.begin * block.answer_bytes,
                                          part.count * block.answer_bytes, kind, stream));
  return PS_CUDA_STATUS(
      cudaMemcpyAsync(to.memory + to.block.examples,
                      from.memory + block.examples + part.begin * block.example_bytes,
                      part.count * block.example_bytes, kind, stream));
}

}  // namespace slipstream::cuda
