#include "server/data_plane/version_changes.h"

#include <algorithm>
#include <utility>

#include "common/kernels/value_changes.h"

namespace slipstream {
namespace {

/// A message ends with the block that brings it to this size, so that none has more than a block
/// beyond.
constexpr size_t kPartBytes = size_t{512} << 10;

/// Returns null if the changes take more than `bytes_max`.
VersionChanges::Parts MakeParts(std::span<const float> from, std::span<const float> to,
                                size_t bytes_max) {
  auto parts = std::make_shared<std::vector<ValueChanges>>();
  size_t bytes = 0;
  for (size_t begin = 0; begin < to.size(); begin += kChangesBlockValues) {
    const size_t count = std::min(kChangesBlockValues, to.size() - begin);
    if (parts->empty() || parts->back().blocks.size() >= kPartBytes) {
      parts->push_back({.offset = begin});
    }
    ValueChanges& part = parts->back();
    const size_t before = part.blocks.size();
    AppendChanges(from.subspan(begin, count), to.subspan(begin, count), part.blocks);
    part.count += count;
    bytes += part.blocks.size() - before;
    if (bytes > bytes_max) return nullptr;
  }
  return parts;
}

}  // namespace

VersionChanges::Parts VersionChanges::From(Version base, std::span<const float> from,
                                           std::span<const float> to) {
  MutexLock lock(mutex_);
  const auto [place, is_new] = made_.try_emplace(base);
  if (!is_new) return place->second;
  const size_t bytes_max = to.size_bytes() / kWholePerChangesMin;
  place->second = MakeParts(from, to, bytes_max - bytes_);
  if (place->second != nullptr) {
    for (const ValueChanges& part : *place->second) bytes_ += part.blocks.size();
  }
  return place->second;
}

VersionChanges::Parts VersionChanges::None(size_t values) {
  ValueChanges all = {.offset = 0, .count = values};
  AppendNoChanges(values, all.blocks);
  return std::make_shared<const std::vector<ValueChanges>>(1, std::move(all));
}

}  // namespace slipstream
