#include "server/storage/buffer_pool.h"

#include <sys/mman.h>

#include <atomic>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/local/shared_values.h"
#include "common/log/log.h"
#include "common/memory/large_pages.h"
#include "common/process/process_limits.h"

namespace slipstream {
namespace {

size_t Bytes(size_t values) { return MappedSize(values * sizeof(float)); }

}  // namespace

std::unique_ptr<FloatBuffer> FloatBuffer::TryMake(size_t values) {
  void* const pages =
      MapAligned(Bytes(values), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (pages == nullptr) return nullptr;
  PreferLargePages(pages, Bytes(values));
  return std::unique_ptr<FloatBuffer>(new FloatBuffer(static_cast<float*>(pages), values));
}

std::unique_ptr<FloatBuffer> FloatBuffer::TryMakeShared(size_t values) {
  static std::atomic<uint64_t> made = 0;
  absl::StatusOr<SharedMemory> memory = MakeSharedMemory(SharedValuesLayout::Bytes(values));
  if (!memory.ok()) return nullptr;
  auto shared = std::make_shared<SharedBuffer>();
  shared->memory = *std::move(memory);
  shared->number = ++made;
  return std::unique_ptr<FloatBuffer>(new FloatBuffer(std::move(shared), values));
}

FloatBuffer::FloatBuffer(std::shared_ptr<SharedBuffer> shared, size_t size)
    : shared_(std::move(shared)),
      values_(SharedValuesLayout::Values(shared_->memory.mapping)),
      size_(size) {}

FloatBuffer::~FloatBuffer() {
  if (shared_ == nullptr) PS_CHECK(munmap(values_, Bytes(size_)) == 0);
}

void FloatBuffer::BeginNext() {
  if (shared_ == nullptr) return;
  shared_->filling = SharedValuesLayout::NextFilling(shared_->memory.mapping);
}

struct BufferPool::State {
  explicit State(size_t buffer_values) : values(buffer_values) {}

  const size_t values;
  Mutex mutex;
  std::vector<std::unique_ptr<FloatBuffer>> idle ABSL_GUARDED_BY(mutex);
  size_t live ABSL_GUARDED_BY(mutex) = 0;
  bool shares ABSL_GUARDED_BY(mutex) = false;
  size_t idle_max ABSL_GUARDED_BY(mutex) = kIdleMax;
};

BufferPool::BufferPool(size_t values) : state_(std::make_shared<State>(values)) {}

void BufferPool::KeepIdle(size_t more) {
  MutexLock lock(state_->mutex);
  state_->idle_max = kIdleMax + more;
}

bool BufferPool::Reserve(size_t buffers) {
  MutexLock lock(state_->mutex);
  while (state_->idle.size() < buffers) {
    std::unique_ptr<FloatBuffer> buffer = FloatBuffer::TryMake(state_->values);
    if (buffer == nullptr) return false;
    state_->idle.push_back(std::move(buffer));
  }
  return true;
}

std::unique_ptr<FloatBuffer> BufferPool::TakeIdle() {
  MutexLock lock(state_->mutex);
  if (state_->idle.empty()) return nullptr;
  std::unique_ptr<FloatBuffer> buffer = std::move(state_->idle.back());
  state_->idle.pop_back();
  return buffer;
}

std::shared_ptr<FloatBuffer> BufferPool::Take() {
  std::shared_ptr<FloatBuffer> buffer = TryTake();
  if (buffer == nullptr) EndForLackOfMemory();
  return buffer;
}

std::shared_ptr<FloatBuffer> BufferPool::TryTake() {
  std::unique_ptr<FloatBuffer> buffer = TakeIdle();
  if (buffer == nullptr && shares()) {
    buffer = FloatBuffer::TryMakeShared(state_->values);
    // Unshared buffers are then kept again, instead of made anew each time.
    if (buffer == nullptr) StopSharing();
  }
  if (buffer == nullptr) buffer = FloatBuffer::TryMake(state_->values);
  return buffer == nullptr ? nullptr : Lend(std::move(buffer));
}

std::shared_ptr<FloatBuffer> BufferPool::TakeAtOnce() {
  std::unique_ptr<FloatBuffer> buffer = TakeIdle();
  if (buffer == nullptr && shares()) return nullptr;
  if (buffer == nullptr) buffer = FloatBuffer::TryMake(state_->values);
  if (buffer == nullptr) EndForLackOfMemory();
  return Lend(std::move(buffer));
}

std::shared_ptr<FloatBuffer> BufferPool::Lend(std::unique_ptr<FloatBuffer> buffer) {
  {
    MutexLock lock(state_->mutex);
    ++state_->live;
  }
  buffer->BeginNext();
  return {buffer.release(), [state = state_](FloatBuffer* returned) {
            std::unique_ptr<FloatBuffer> owned(returned);  // Freed after the lock, if too many.
            MutexLock lock(state->mutex);
            --state->live;
            if (state->shares && owned->shared() == nullptr) return;
            if (state->idle.size() < state->idle_max) state->idle.push_back(std::move(owned));
          }};
}

bool BufferPool::shares() const {
  MutexLock lock(state_->mutex);
  return state_->shares;
}

void BufferPool::StopSharing() {
  LogWarning("new versions cannot be put in shared memory: workers of this machine are sent them");
  MutexLock lock(state_->mutex);
  state_->shares = false;
}

void BufferPool::Share() {
  std::vector<std::unique_ptr<FloatBuffer>> freed;  // Freed after the lock is released.
  MutexLock lock(state_->mutex);
  if (!std::exchange(state_->shares, true)) freed.swap(state_->idle);
}

size_t BufferPool::live() const {
  MutexLock lock(state_->mutex);
  return state_->live;
}

}  // namespace slipstream
