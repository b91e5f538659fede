#ifndef SLIPSTREAM_COMMON_WIRE_SLICE_CURSOR_H_
#define SLIPSTREAM_COMMON_WIRE_SLICE_CURSOR_H_

#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/kernels/segments.h"

namespace slipstream {

/// Reads the bytes of several slices one after another without flattening them.
///
/// Not thread-safe: one owner. `slices` must outlive the cursor and what it hands out.
class SliceCursor {
 public:
  explicit SliceCursor(const std::vector<grpc::Slice>& slices);

  size_t remaining() const { return remaining_; }

  /// The most bytes of a base-128 number of 64 bits, and of one of 32 bits.
  static constexpr int kVarintBytesMax = 10;
  static constexpr int kShortVarintBytesMax = 5;

  /// Reads a base-128 number and appends its bytes to `raw`. Returns nothing if it has more than
  /// `bytes_max` bytes or does not end. REQUIRES: bytes_max <= kVarintBytesMax.
  std::optional<uint64_t> ReadVarint(std::string& raw, int bytes_max = kVarintBytesMax);

  /// Returns the next `bytes` bytes where they lie.
  /// REQUIRES: bytes <= remaining().
  Segments Take(size_t bytes);

 private:
  ByteSegment Rest() const;
  void Advance(size_t bytes);

  const std::vector<grpc::Slice>& slices_;
  size_t slice_ = 0;
  size_t offset_ = 0;  // Within the slice.
  size_t remaining_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_SLICE_CURSOR_H_
