#include "server/storage/buffer_pool.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "common/base/mutex.h"

namespace slipstream {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

FloatBuffer::FloatBuffer(size_t values)
    : size_(values),
      values_(static_cast<float*>(
          ::operator new[](std::max<size_t>(1, values) * sizeof(float), kAlignment))) {}

void FloatBuffer::Free::operator()(float* values) const { ::operator delete[](values, kAlignment); }

struct BufferPool::State {
  explicit State(size_t buffer_values) : values(buffer_values) {}

  const size_t values;
  Mutex mutex;
  std::vector<std::unique_ptr<FloatBuffer>> idle ABSL_GUARDED_BY(mutex);
  size_t live ABSL_GUARDED_BY(mutex) = 0;
};

BufferPool::BufferPool(size_t values) : state_(std::make_shared<State>(values)) {}

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
  if (buffer == nullptr) buffer = std::make_unique<FloatBuffer>(state_->values);
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
