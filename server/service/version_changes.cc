#include "server/service/version_changes.h"

#include <algorithm>
#include <utility>

#include "common/kernels/value_changes.h"

namespace slipstream {
namespace {

/// The values that one message is about, whole blocks: at most 16 MiB as fp32.
constexpr size_t kPartValues = 64 * kChangesBlockValues;

VersionChanges::Parts MakeParts(std::span<const float> from, std::span<const float> to) {
  auto parts = std::make_shared<std::vector<ValueChanges>>();
  const size_t bytes_max = to.size_bytes() / VersionChanges::kWholePerChangesMin;
  size_t bytes = 0;
  for (size_t begin = 0; begin < to.size(); begin += kPartValues) {
    const size_t count = std::min(kPartValues, to.size() - begin);
    ValueChanges part = {.offset = begin, .count = count};
    AppendChanges(from.subspan(begin, count), to.subspan(begin, count), part.blocks);
    bytes += part.blocks.size();
    if (bytes > bytes_max) return nullptr;
    parts->push_back(std::move(part));
  }
  return parts;
}

}  // namespace

VersionChanges::Parts VersionChanges::From(Version base, std::span<const float> from,
                                           std::span<const float> to) {
  MutexLock lock(mutex_);
  if (base_ != base) {
    parts_ = MakeParts(from, to);
    base_ = base;
  }
  return parts_;
}

}  // namespace slipstream
