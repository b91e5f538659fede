#ifndef SLIPSTREAM_COMMON_KERNELS_VALUE_CHANGES_H_
#define SLIPSTREAM_COMMON_KERNELS_VALUE_CHANGES_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace slipstream {

/// These functions write and apply the changes from one version of some values to another, bit for
/// bit; WeightsChunk.changed_count in proto/shard.proto has the format. Where few values change, it
/// is short: 6 bytes for each, or 4 if the new ones are of bfloat16's precision.

/// The number of values of a block; the last one may be shorter.
inline constexpr size_t kChangesBlockValues = 65'536;

/// Appends the blocks of the changes from `from` to `to`, which are of one size, to `blocks`.
void AppendChanges(std::span<const float> from, std::span<const float> to, std::string& blocks);

/// Appends the blocks of so many values of which none has changed.
void AppendNoChanges(size_t values, std::string& blocks);

/// Writes to `to` the values that `from`, of the same size, has become by these changes. Returns
/// false if the blocks are not of so many values; what is in `to` has no meaning then.
bool ApplyChanges(std::string_view blocks, std::span<const float> from, std::span<float> to);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_VALUE_CHANGES_H_
