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

constexpr size_t kPieceWords = size_t{1} << 20;

std::span<const std::byte> AnswersOf(const ExampleTable& table) {
  return table.targets.empty() ? std::as_bytes(table.labels) : std::as_bytes(table.targets);
}

bool AreSame(const ExampleTable& one, const ExampleTable& other) {
  const std::span<const std::byte> answers = AnswersOf(one);
  return one.values == other.values && answers.data() == AnswersOf(other).data() &&
         answers.size() == AnswersOf(other).size();
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
        Keep(copier.staged_, PinnedArray<float>::Allocate(kPieceWords, "examples to keep")));
    return copier;
  }

  /// Copies `words` words, which `read` writes to pinned memory from a position on.
  template <typename Read>
  absl::Status Copy(size_t words, const Read& read, const DeviceArray<uint32_t>& to,
                    cudaStream_t stream) const {
    for (size_t at = 0; at < words; at += kPieceWords) {
      const std::span<float> piece(staged_.data(), std::min(kPieceWords, words - at));
      read(at, piece);
      PS_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(to.data() + at, piece.data(), piece.size_bytes(),
                                              cudaMemcpyHostToDevice, stream));
      PS_RETURN_IF_ERROR(DeviceContext::Await(stream));
    }
    return absl::OkStatus();
  }

 private:
  PinnedArray<float> staged_;
};

absl::Status CopyTo(KeptExamples::Copy& copy, const Copier& copier, const ExampleTable& table,
                    const PlanMember& member) {
  const std::span<const std::byte> answers = AnswersOf(table);
  const auto read_answers = [&](size_t begin, std::span<float> to) {
    std::memcpy(to.data(), answers.data() + begin * sizeof(float), to.size_bytes());
  };
  const cudaStream_t stream = member.context->compute();
  PS_RETURN_IF_ERROR(member.context->Enter());
  PS_RETURN_IF_ERROR(Allocate(copy, table.values * sizeof(float), answers.size()));
  PS_RETURN_IF_ERROR(copier.Copy(table.values, table.read, copy.examples, stream));
  return copier.Copy(answers.size() / sizeof(float), read_answers, copy.answers, stream);
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
            {{"bytes", table.values * sizeof(float) + AnswersOf(table).size()}});
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
