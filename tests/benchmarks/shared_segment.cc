#include "tests/benchmarks/shared_segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <new>
#include <thread>

#include "common/memory/large_pages.h"
#include "tests/benchmarks/child_process.h"

namespace slipstream::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kIsAwaited = uint64_t{1} << 32;

/// How long to poll: about as long as it takes to copy or to apply one piece.
constexpr std::chrono::microseconds kPollTime(50);

timespec ToTimespec(std::chrono::nanoseconds duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {.tv_sec = static_cast<time_t>(seconds.count()),
          .tv_nsec = static_cast<long>((duration - seconds).count())};
}

/// Calls futex(2). Other processes wait on the word, so FUTEX_PRIVATE_FLAG is not set.
void Futex(const std::atomic<uint32_t>& word, int operation, uint32_t value,
           const timespec* timeout) {
  syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

bool SharedCount::HasReached(uint32_t target) const {
  return static_cast<int32_t>(value_.load() - target) >= 0;
}

void SharedCount::Raise() {
  ++value_;
  // Block stores its target before it looks at the value, so at least one of the two sees the
  // other.
  const uint64_t awaited = awaited_.load();
  if (awaited != 0 && HasReached(static_cast<uint32_t>(awaited))) {
    Futex(value_, FUTEX_WAKE, INT_MAX, nullptr);
  }
}

bool SharedCount::Await(uint32_t target, std::chrono::nanoseconds timeout) {
  const Clock::time_point begin = Clock::now();
  while (!HasReached(target)) {
    const std::chrono::nanoseconds waited = Clock::now() - begin;
    if (waited >= timeout) return false;
    if (waited < kPollTime) {
      // If cores are scarce, the thread that this one waits for may need the core.
      std::this_thread::yield();
    } else {
      Block(target, timeout - waited);
    }
  }
  return true;
}

void SharedCount::Block(uint32_t target, std::chrono::nanoseconds timeout) {
  awaited_ = kIsAwaited | target;
  const uint32_t seen = value_.load();
  const timespec left = ToTimespec(timeout);
  // The call returns at once if the value has changed since it was read.
  if (static_cast<int32_t>(seen - target) < 0) Futex(value_, FUTEX_WAIT, seen, &left);
  awaited_ = 0;
}

/// The head of the segment. The lanes follow it, then the weights.
struct alignas(4096) SharedSegment::Head {
  uint64_t values = 0;
  uint32_t workers = 0;
  std::atomic<uint32_t> lanes_taken = 0;
};

SharedSegment::SharedSegment(uint32_t workers, size_t values)
    : file_(memfd_create("raw_shm_probe", MFD_CLOEXEC)),
      address_("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_.get())) {
  const size_t bytes =
      MappedSize(sizeof(Head) + workers * sizeof(SharedLane) + values * sizeof(float));
  Require(file_.is_open() && ftruncate(file_.get(), static_cast<off_t>(bytes)) == 0,
          "cannot make shared memory");
  Map(bytes);
  MakeLargePages(pages_, bytes);
  Head* const head = new (pages_) Head;
  head->values = values;
  head->workers = workers;
  for (uint32_t worker = 0; worker < workers; ++worker) {
    SharedLane& made = lane(worker);
    new (&made.sent) SharedCount;
    new (&made.applied) SharedCount;
  }
  std::ranges::fill(weights(), 0.0f);  // Touch the pages before anything is timed.
}

SharedSegment::SharedSegment(const std::string& address)
    : file_(open(address.c_str(), O_RDWR | O_CLOEXEC)), address_(address) {
  struct stat facts = {};
  Require(file_.is_open() && fstat(file_.get(), &facts) == 0, "no shared memory at " + address);
  Map(static_cast<size_t>(facts.st_size));
}

SharedSegment::~SharedSegment() { munmap(pages_, bytes_); }

void SharedSegment::Map(size_t bytes) {
  bytes_ = bytes;
  pages_ =
      static_cast<std::byte*>(MapAligned(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get()));
  Require(pages_ != nullptr, "cannot map shared memory of " + std::to_string(bytes) + " bytes");
}

SharedSegment::Head& SharedSegment::head() const { return *reinterpret_cast<Head*>(pages_); }

uint32_t SharedSegment::workers() const { return head().workers; }

SharedLane& SharedSegment::lane(uint32_t worker) const {
  return reinterpret_cast<SharedLane*>(pages_ + sizeof(Head))[worker];
}

SharedLane& SharedSegment::TakeLane() const {
  const uint32_t worker = head().lanes_taken++;
  Require(worker < workers(), "all workers of " + address_ + " are there already");
  return lane(worker);
}

std::span<float> SharedSegment::weights() const {
  return {reinterpret_cast<float*>(&lane(workers())), head().values};
}

}  // namespace slipstream::benchmarks
