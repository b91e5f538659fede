// The functions of CUDA's runtime that Slipstream calls, under their own names.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "tests/gpu/simulated/devices.h"
#include "tests/gpu/simulated/kernel_threads.h"
#include "tests/gpu/simulated/memory.h"
#include "tests/gpu/simulated/streams.h"
#include "tests/gpu/simulated/work_queue.h"

namespace simulated = slipstream::simulated;

namespace {

thread_local cudaError_t last_error = cudaSuccess;

// Records the error. This includes the state that a stream is not done yet, which callers may not
// expect.
cudaError_t Told(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// Makes the call unless the device is lost: such a device cannot provide anything.
template <typename Call>
cudaError_t ToldUnlessLost(Call call) {
  const bool is_lost = simulated::WorkQueue::Get().IsLost(simulated::current_device);
  return Told(is_lost ? cudaErrorLaunchFailure : call());
}

bool IsDevice(int device) { return device >= 0 && device < simulated::kDevices; }

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
};

bool IsOfHost(const void* memory, size_t bytes) {
  const simulated::Where where = simulated::Find(memory, bytes);
  return where == simulated::Where::kPinned || where == simulated::Where::kElsewhere;
}

bool IsAllowed(const Copy& copy, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return IsOfHost(copy.from, copy.bytes) && simulated::IsOnDevice(copy.to, copy.bytes);
    case cudaMemcpyDeviceToHost:
      return simulated::IsOnDevice(copy.from, copy.bytes) && IsOfHost(copy.to, copy.bytes);
    case cudaMemcpyDeviceToDevice:
      return simulated::IsOnDevice(copy.from, copy.bytes) &&
             simulated::IsOnDevice(copy.to, copy.bytes);
    default:
      return false;
  }
}

}  // namespace

namespace slipstream::simulated {

bool IsReachable(const void* memory) {
  const Where where = Find(memory, 1);
  return memory == nullptr || where == Where::kDevice || where == Where::kPinned;
}

void EnqueueGrid(cudaStream_t stream, dim3 blocks, dim3 threads, bool can_run,
                 std::function<void()> body) {
  if (!can_run) {
    Told(cudaErrorIllegalAddress);
    return;
  }
  Told(Enqueue(stream, [=, body = std::move(body)] { RunGrid(blocks, threads, body); }));
}

}  // namespace slipstream::simulated

extern "C" {

cudaError_t cudaGetLastError() {
  // The loss of a device cannot be cleared.
  if (simulated::WorkQueue::Get().IsLost(simulated::current_device)) return cudaErrorLaunchFailure;
  return std::exchange(last_error, cudaSuccess);
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case cudaErrorStreamCaptureUnjoined:
      return "capturing stream has unjoined work";
    default:
      return "an error that the simulated GPU has no words for";
  }
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = simulated::kDevices;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!IsDevice(device)) return Told(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "simulated");
  properties->totalGlobalMem = simulated::kDeviceBytes;
  properties->major = 9;
  properties->uuid.bytes[0] = static_cast<char>(device);
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!IsDevice(device)) return Told(cudaErrorInvalidDevice);
  simulated::current_device = device;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = simulated::FreeBytes();
  *total = simulated::kDeviceBytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return ToldUnlessLost([&] { return simulated::NewOnDevice(memory, bytes); });
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned /*flags*/) {
  return ToldUnlessLost([&] { return simulated::NewPinned(memory, bytes); });
}

// CUDA waits for the device before it frees memory.
cudaError_t cudaFree(void* memory) {
  simulated::WorkQueue::Get().AwaitAll();
  return Told(simulated::Delete(memory));
}

cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned /*flags*/) {
  return ToldUnlessLost([&] { return simulated::Pin(memory, bytes); });
}

cudaError_t cudaHostUnregister(void* memory) {
  simulated::WorkQueue::Get().AwaitAll();
  return Told(simulated::Unpin(memory));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const Copy copy = {to, from, bytes};
  if (!IsAllowed(copy, kind)) return Told(cudaErrorInvalidValue);
  const bool takes_now = simulated::Find(from, bytes) == simulated::Where::kElsewhere;
  // CUDA does not say which data a graph would copy from unpinned memory, or when.
  const bool is_pinned = !takes_now && simulated::Find(to, bytes) != simulated::Where::kElsewhere;
  if (!is_pinned && simulated::IsCaptured(stream)) return Told(cudaErrorStreamCaptureUnsupported);
  if (!takes_now) {
    return Told(
        simulated::Enqueue(stream, [copy] { std::memcpy(copy.to, copy.from, copy.bytes); }));
  }
  // When the runtime returns, it has already copied data from memory that is not pinned.
  const auto* begin = static_cast<const std::byte*>(from);
  return Told(simulated::Enqueue(
      stream, [to, bytes, values = std::vector<std::byte>(begin, begin + bytes)] {
        std::memcpy(to, values.data(), bytes);
      }));
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  if (!simulated::IsOnDevice(memory, bytes)) return Told(cudaErrorInvalidValue);
  return Told(simulated::Enqueue(stream, [=] { std::memset(memory, value, bytes); }));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  // Blocking streams would have to be ordered with the default stream.
  if (flags != cudaStreamNonBlocking) return Told(cudaErrorInvalidValue);
  return ToldUnlessLost([&] { return simulated::NewStream(stream); });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (priority > 0 || priority < -5) return Told(cudaErrorInvalidValue);
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return Told(simulated::DeleteStream(stream)); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return Told(simulated::Synchronize(stream));
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return Told(simulated::Query(stream)); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  return ToldUnlessLost([&] { return simulated::NewEvent(event); });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return Told(simulated::DeleteEvent(event)); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Told(simulated::Record(event, stream));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  return Told(simulated::Wait(stream, event));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  return ToldUnlessLost([&] { return simulated::BeginCapture(stream); });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return Told(simulated::EndCapture(stream, graph));
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return Told(simulated::DeleteGraph(graph)); }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  return ToldUnlessLost([&] { return simulated::Instantiate(executable, graph); });
}
cudaError_t cudaGraphUpload(cudaGraphExec_t /*executable*/, cudaStream_t stream) {
  return Told(simulated::Query(stream) == cudaErrorStreamCaptureUnsupported
                  ? cudaErrorStreamCaptureUnsupported
                  : cudaSuccess);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return Told(simulated::DeleteExecutable(executable));
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return Told(simulated::Launch(executable, stream));
}

}  // extern "C"
