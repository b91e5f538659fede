#include "worker/compute/cuda/kept_examples.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {
namespace {

constexpr size_t kPieceBytes = size_t{4} << 20;

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

/// Fails unless `times` times `bytes` are free on the current device.
absl::Status CheckFree(size_t bytes, size_t times) {
  size_t free = 0;
  size_t total = 0;
  PS_RETURN_IF_CUDA_ERROR(cudaMemGetInfo(&free, &total));
  if (bytes <= free / times) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "they take ", bytes, " bytes, and only ", free,
      " are free on the GPU; it keeps them if they take at most 1/", KeptExamples::free_share));
}

absl::Status Allocate(DeviceArray<uint32_t>& array, size_t bytes) {
  return Keep(array, DeviceArray<uint32_t>::Allocate(bytes / sizeof(uint32_t), "examples to keep"));
}

/// Allocates both arrays, uninitialised.
absl::Status Allocate(KeptExamples::Copy& copy, size_t examples, size_t answers) {
  const size_t bytes = examples + answers;
  PS_RETURN_IF_ERROR(CheckFree(bytes, KeptExamples::free_share));
  PS_RETURN_IF_ERROR(Allocate(copy.examples, examples));
  PS_RETURN_IF_ERROR(Allocate(copy.answers, answers));
  // Check again: other workers may have allocated in the meantime.
  return CheckFree(bytes, KeptExamples::free_share - 1);
}

/// Copies piece by piece through pinned memory. A copy from other memory may wait for the device
/// inside the call, and for a hung device for ever.
class Copier {
 public:
  static absl::StatusOr<Copier> New() {
    Copier copier;
    PS_RETURN_IF_ERROR(
        Keep(copier.staged_, PinnedArray<std::byte>::Allocate(kPieceBytes, "examples to keep")));
    return copier;
  }

  absl::Status Copy(std::span<const std::byte> from, const DeviceArray<uint32_t>& to,
                    cudaStream_t stream) const {
    auto* const begin = reinterpret_cast<std::byte*>(to.data());
    for (size_t at = 0; at < from.size(); at += kPieceBytes) {
      const auto piece = from.subspan(at, std::min(kPieceBytes, from.size() - at));
      std::memcpy(staged_.data(), piece.data(), piece.size());
      PS_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(begin + at, staged_.data(), piece.size(),
                                              cudaMemcpyHostToDevice, stream));
      PS_RETURN_IF_ERROR(DeviceContext::Await(stream));
    }
    return absl::OkStatus();
  }

 private:
  PinnedArray<std::byte> staged_;
};

absl::Status CopyTo(KeptExamples::Copy& copy, const Copier& copier, const ExampleTable& table,
                    const PlanMember& member) {
  const std::span<const std::byte> examples = std::as_bytes(table.examples);
  const std::span<const std::byte> answers = AnswersOf(table);
  const cudaStream_t stream = member.context->compute();
  PS_RETURN_IF_ERROR(member.context->Enter());
  PS_RETURN_IF_ERROR(Allocate(copy, examples.size(), answers.size()));
  PS_RETURN_IF_ERROR(copier.Copy(examples, copy.examples, stream));
  return copier.Copy(answers, copy.answers, stream);
}

absl::Status CopyToAll(KeptExamples::Copies& copies, const Copier& copier,
                       const ExampleTable& table, const std::vector<PlanMember>& members) {
  for (size_t i = 0; i < members.size(); ++i) {
    PS_RETURN_IF_ERROR(CopyTo(copies[i], copier, table, members[i]));
  }
  return absl::OkStatus();
}

void TellWhyNot(std::string_view reason) {
  LogInfo("examples go up with every batch", {{"reason", reason}});
}

}  // namespace

std::shared_ptr<const KeptExamples::Copies> KeptExamples::CopiesOf(
    const ExampleTable& table, const std::vector<PlanMember>& members) {
  MutexLock lock(mutex_);
  std::shared_ptr<const Copies> there = copies_.lock();
  if (there == nullptr) return MakeCopies(table, members);
  if (AreSame(table, table_)) return there;
  TellWhyNot("others lie on the GPU");
  return nullptr;
}

std::shared_ptr<const KeptExamples::Copies> KeptExamples::MakeCopies(
    const ExampleTable& table, const std::vector<PlanMember>& members) {
  auto made = std::make_shared<Copies>(members.size());
  absl::StatusOr<Copier> copier = Copier::New();
  const absl::Status copied =
      copier.ok() ? CopyToAll(*made, *copier, table, members) : copier.status();
  if (copied.ok()) {
    LogInfo("examples lie on the GPU",
            {{"bytes", table.examples.size_bytes() + AnswersOf(table).size()}});
    table_ = table;
    copies_ = made;
    return made;
  }
  TellWhyNot(std::string(copied.message()));
  if (DeviceContext::HasHung()) {
    (void)new auto(std::move(made));
    (void)new auto(std::move(copier));
  }
  return nullptr;
}

}  // namespace slipstream::cuda
