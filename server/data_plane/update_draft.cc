#include "server/data_plane/update_draft.h"

#include <utility>

namespace slipstream {

void UpdateDraft::Add(size_t begin, const Segments& values) {
  const size_t count = TotalBytes(values) / sizeof(float);
  MutexLock lock(mutex_);
  if (!buffers_.has_value()) return;
  UpdateRange(*rules_, *buffers_, begin, count,
              {.sum = {}, .last = &values, .last_weight = forecast_.weight},
              {.rate = forecast_.learning_rate});
  values_made_ += count;
}

bool UpdateDraft::IsComplete() {
  MutexLock lock(mutex_);
  return HasAll();
}

void UpdateDraft::Cancel() { Take(); }

std::optional<UpdateBuffers> UpdateDraft::Take() {
  MutexLock lock(mutex_);
  const bool is_complete = HasAll();
  std::optional<UpdateBuffers> buffers = std::exchange(buffers_, std::nullopt);
  if (!is_complete) return std::nullopt;
  return buffers;
}

bool UpdateDraft::HasAll() const {
  return buffers_.has_value() && values_made_ == buffers_->to->values().size();
}

}  // namespace slipstream
