// The part of NCCL that Slipstream uses: sums over the devices of one process.

#include <nccl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/gpu/simulated/devices.h"
#include "tests/gpu/simulated/library_calls.h"
#include "tests/gpu/simulated/memory.h"
#include "tests/gpu/simulated/streams.h"
#include "worker/compute/cuda/cuda_libraries.h"

namespace slipstream::simulated {
namespace {

struct Communicator {
  int device;
  size_t rank;
  std::shared_ptr<const std::vector<ncclComm_t>> all;  // By rank.
  std::shared_ptr<Abortion> abortion;                  // Shared by all of them.
};

/// One device's part of a sum.
struct Part {
  const Communicator* communicator;
  const float* from;
  float* to;
  size_t size;
  int root;
  cudaStream_t stream;

  bool IsUsable() const {
    const int current = current_device;
    current_device = communicator->device;
    const size_t bytes = size * sizeof(float);
    const bool is_root = communicator->rank == static_cast<size_t>(root);
    const bool is_usable = IsOnDevice(from, bytes) && (!is_root || IsOnDevice(to, bytes)) &&
                           DeviceOf(stream) == communicator->device;
    current_device = current;
    return is_usable;
  }
};

thread_local int groups_open = 0;
thread_local std::vector<Part> parts;

/// Takes the next call of each rank, which belong together. Returns an empty vector if one is
/// missing or if they do not match.
std::vector<Part> TakeNext() {
  std::vector<Part> taken;
  const auto all = parts.front().communicator->all;
  for (size_t rank = 0; rank < all->size(); ++rank) {
    const auto is_of_rank = [&](const Part& part) {
      return part.communicator == &Of<Communicator>((*all)[rank]);
    };
    const auto found = std::ranges::find_if(parts, is_of_rank);
    if (found == parts.end()) return {};
    taken.push_back(*found);
    parts.erase(found);
  }
  const Part& first = taken.front();
  const auto fits = [&](const Part& part) {
    return part.size == first.size && part.root == first.root && part.IsUsable();
  };
  return std::ranges::all_of(taken, fits) ? taken : std::vector<Part>();
}

void Sum(const std::vector<Part>& taken) {
  const auto root = static_cast<size_t>(taken.front().root);
  for (size_t i = 0; i < taken.front().size; ++i) {
    float sum = 0;
    for (const Part& part : taken) sum += part.from[i];
    taken[root].to[i] = sum;
  }
}

ncclResult_t CommInitAll(ncclComm_t* communicators, int count, const int* devices) {
  for (int i = 0; i < count; ++i) {
    const bool is_repeated = std::find(devices, devices + i, devices[i]) != devices + i;
    if (devices[i] < 0 || devices[i] >= kDevices || is_repeated) return ncclInvalidUsage;
  }
  auto all = std::make_shared<std::vector<ncclComm_t>>();
  const auto abortion = std::make_shared<Abortion>();
  for (int i = 0; i < count; ++i) {
    communicators[i] =
        Given<ncclComm_t>(new Communicator{devices[i], static_cast<size_t>(i), all, abortion});
    all->push_back(communicators[i]);
  }
  return ncclSuccess;
}

ncclResult_t CommDestroy(ncclComm_t communicator) {
  delete &Of<Communicator>(communicator);
  return ncclSuccess;
}

ncclResult_t CommAbort(ncclComm_t communicator) {
  Of<Communicator>(communicator).abortion->Abort();
  return CommDestroy(communicator);
}

ncclResult_t CommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = nccl_has_failed ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}

const char* GetErrorString(ncclResult_t error) {
  return error == ncclSuccess ? "no error" : "invalid usage";
}

ncclResult_t GroupStart() {
  ++groups_open;
  return ncclSuccess;
}

ncclResult_t GroupEnd() {
  if (groups_open == 0) return ncclInvalidUsage;
  if (--groups_open > 0) return ncclSuccess;
  while (!parts.empty()) {
    const std::vector<Part> taken = TakeNext();
    if (taken.empty()) {
      parts.clear();
      return ncclInvalidUsage;
    }
    std::vector<cudaStream_t> streams;
    for (const Part& part : taken) streams.push_back(part.stream);
    const auto abortion = taken.front().communicator->abortion;
    if (EnqueueTogether(
            streams, [taken] { Sum(taken); }, abortion) != cudaSuccess) {
      parts.clear();
      return ncclUnhandledCudaError;
    }
  }
  return ncclSuccess;
}

ncclResult_t Reduce(const void* from, void* to, size_t size, ncclDataType_t type,
                    ncclRedOp_t operation, int root, ncclComm_t communicator, cudaStream_t stream) {
  if (type != ncclFloat32 || operation != ncclSum) return ncclInvalidArgument;
  GroupStart();
  parts.push_back({&Of<Communicator>(communicator), static_cast<const float*>(from),
                   static_cast<float*>(to), size, root, stream});
  return GroupEnd();
}

constexpr cuda::Nccl kTable = {
    .CommInitAll = CommInitAll,
    .CommDestroy = CommDestroy,
    .CommAbort = CommAbort,
    .CommGetAsyncError = CommGetAsyncError,
    .GetErrorString = GetErrorString,
    .GroupStart = GroupStart,
    .GroupEnd = GroupEnd,
    .Reduce = Reduce,
};

}  // namespace
}  // namespace slipstream::simulated

namespace slipstream::cuda {

absl::StatusOr<const Nccl*> Nccl::Load() { return &simulated::kTable; }

}  // namespace slipstream::cuda
