#include "worker/compute/cuda/kept_examples.h"

#include <cuda_runtime.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {
namespace {

constexpr size_t kFreeShare = 4;  // A copy may take one in so many of the bytes that are free.

std::span<const std::byte> AnswersOf(const ExampleTable& table) {
  return table.targets.empty() ? std::as_bytes(table.labels) : std::as_bytes(table.targets);
}

bool AreSame(std::span<const std::byte> one, std::span<const std::byte> other) {
  return one.data() == other.data() && one.size() == other.size();
}

bool AreSame(const ExampleTable& one, const ExampleTable& other) {
  return AreSame(std::as_bytes(one.examples), std::as_bytes(other.examples)) &&
         AreSame(AnswersOf(one), AnswersOf(other));
}

absl::Status CheckRoom(size_t bytes) {
  size_t free = 0;
  size_t total = 0;
  PS_RETURN_IF_CUDA_ERROR(cudaMemGetInfo(&free, &total));
  if (bytes <= free / kFreeShare) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("they take ", bytes, " bytes, more than 1/",
                                                   kFreeShare, " of the ", free,
                                                   " that are free on the GPU"));
}

absl::Status CopyTo(DeviceArray<uint32_t>& array, std::span<const std::byte> values,
                    cudaStream_t stream) {
  PS_RETURN_IF_ERROR(Keep(array, DeviceArray<uint32_t>::Allocate(values.size() / sizeof(uint32_t),
                                                                 "examples to keep")));
  return PS_CUDA_STATUS(
      cudaMemcpyAsync(array.data(), values.data(), values.size(), cudaMemcpyHostToDevice, stream));
}

absl::Status CopyTo(KeptExamples::Copy& copy, const ExampleTable& table, const PlanMember& member) {
  const std::span<const std::byte> examples = std::as_bytes(table.examples);
  const std::span<const std::byte> answers = AnswersOf(table);
  const cudaStream_t stream = member.context->compute();
  PS_RETURN_IF_ERROR(member.context->Enter());
  PS_RETURN_IF_ERROR(CheckRoom(examples.size() + answers.size()));
  PS_RETURN_IF_ERROR(CopyTo(copy.examples, examples, stream));
  PS_RETURN_IF_ERROR(CopyTo(copy.answers, answers, stream));
  return DeviceContext::Await(stream);
}

}  // namespace

std::shared_ptr<const KeptExamples::Copies> KeptExamples::CopiesOf(
    const ExampleTable& table, const std::vector<PlanMember>& members) {
  MutexLock lock(mutex_);
  if (std::shared_ptr<const Copies> there = copies_.lock()) {
    return AreSame(table, table_) ? there : nullptr;
  }
  auto made = std::make_shared<Copies>(members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    const absl::Status copied = CopyTo((*made)[i], table, members[i]);
    if (copied.ok()) continue;
    spdlog::info("examples go up with every batch reason=\"{}\"", std::string(copied.message()));
    if (DeviceContext::HasHung()) (void)new auto(std::move(*made));
    return nullptr;
  }
  spdlog::info("examples lie on the GPU bytes={}",
               table.examples.size_bytes() + AnswersOf(table).size());
  table_ = table;
  copies_ = made;
  return made;
}

}  // namespace slipstream::cuda
