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

  /// Reads a base-128 number and appends its bytes to `raw`. Nothing if it has more than ten bytes
  /// or does not end.
  std::optional<uint64_t> ReadVarint(std::string& raw);

  /// Hands out the next `bytes` bytes where they lie.
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
