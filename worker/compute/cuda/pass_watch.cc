#include "worker/compute/cuda/pass_watch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {
namespace {

/// How often the devices' state is queried, since a device that fails does not raise flags.
constexpr auto kQueryInterval = std::chrono::milliseconds(1);

}  // namespace

bool PassWatch::AllRaised(size_t flag) const {
  return std::ranges::all_of(members_, [&](const PlanMember& member) {
    const std::atomic_ref<uint32_t> raised(member.memory.flags.data()[flag]);
    return raised.load(std::memory_order_acquire) == pass_;
  });
}

absl::Status PassWatch::Await(absl::FunctionRef<bool()> holds) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Clock::time_point queried = begin;
  // Polls, as CUDA's own waits do, but yields the processor to other threads: the flags of a small
  // net are tens of microseconds apart.
  while (!holds()) {
    std::this_thread::yield();
    const Clock::time_point now = Clock::now();
    if (now - queried < kQueryInterval) continue;
    queried = now;
    const absl::StatusOr<bool> are_idle = AreIdle();
    if (!are_idle.ok()) return are_idle.status();
    if (*are_idle && !holds()) {
      return absl::InternalError("the GPU finished a pass without saying so");
    }
    if (DeviceContext::IsTooLong(begin)) return DeviceContext::Hung();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> PassWatch::AreIdle() const {
  bool are_idle = true;
  for (const PlanMember& member : members_) {
    PS_RETURN_IF_ERROR(member.context->Enter());
    for (cudaStream_t stream : {member.context->compute(), member.context->download()}) {
      const absl::StatusOr<bool> is_done = DeviceContext::IsDone(stream);
      if (!is_done.ok()) return is_done.status();
      are_idle &= *is_done;
    }
  }
  if (group_ != nullptr) PS_RETURN_IF_ERROR(group_->Check());
  return are_idle;
}

}  // namespace slipstream::cuda
