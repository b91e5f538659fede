#include "server/storage/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/mutex.h"

namespace slipstream {
namespace {

size_t Bytes(size_t values) { return std::max<size_t>(1, values) * sizeof(float); }

}  // namespace

std::unique_ptr<FloatBuffer> FloatBuffer::TryMake(size_t values) {
  void* const pages =
      mmap(nullptr, Bytes(values), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  return std::unique_ptr<FloatBuffer>(new FloatBuffer(static_cast<float*>(pages), values));
}

FloatBuffer::~FloatBuffer() { PS_CHECK(munmap(values_, Bytes(size_)) == 0); }

struct BufferPool::State {
  explicit State(size_t buffer_values) : values(buffer_values) {}

  const size_t values;
  Mutex mutex;
  std::vector<std::unique_ptr<FloatBuffer>> idle ABSL_GUARDED_BY(mutex);
  size_t live ABSL_GUARDED_BY(mutex) = 0;
};

BufferPool::BufferPool(size_t values) : state_(std::make_shared<State>(values)) {}

bool BufferPool::Reserve(size_t buffers) {
  MutexLock lock(state_->mutex);
  while (state_->idle.size() < buffers) {
    std::unique_ptr<FloatBuffer> buffer = FloatBuffer::TryMake(state_->values);
    if (buffer == nullptr) return false;
    state_->idle.push_back(std::move(buffer));
  }
  return true;
}

std::shared_ptr<FloatBuffer> BufferPool::Take() {
  std::unique_ptr<FloatBuffer> buffer;
  {
    MutexLock lock(state_->mutex);
    ++state_->live;
    if (!state_->idle.empty()) {
      buffer = std::move(state_->idle.back());
      state_->idle.pop_back();
    }
  }
  if (buffer == nullptr) buffer = FloatBuffer::TryMake(state_->values);
  PS_CHECK(buffer != nullptr);
  return {buffer.release(), [state = state_](FloatBuffer* returned) {
            std::unique_ptr<FloatBuffer> owned(returned);  // Freed after the lock, if too many.
            MutexLock lock(state->mutex);
            --state->live;
            if (state->idle.size() < kIdleMax) state->idle.push_back(std::move(owned));
          }};
}

size_t BufferPool::live() const {
  MutexLock lock(state_->mutex);
  return state_->live;
}

}  // namespace slipstream
