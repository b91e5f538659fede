#include "common/wire/slice_cursor.h"

#include <algorithm>

#include "common/base/check.h"

namespace slipstream {
SliceCursor::SliceCursor(const std::vector<grpc::Slice>& slices) : slices_(slices) {
  for (const grpc::Slice& slice : slices_) remaining_ += slice.size();
  Advance(0);
}

ByteSegment SliceCursor::Rest() const {
  const grpc::Slice& slice = slices_[slice_];
  return std::as_bytes(std::span(slice.begin(), slice.size())).subspan(offset_);
}

void SliceCursor::Advance(size_t bytes) {
  offset_ += bytes;
  remaining_ -= bytes;
  while (slice_ < slices_.size() && offset_ == slices_[slice_].size()) {
    ++slice_;
    offset_ = 0;
  }
}

std::optional<uint64_t> SliceCursor::ReadVarint(std::string& raw, int bytes_max) {
  PS_CHECK(bytes_max <= kVarintBytesMax);
  uint64_t value = 0;
  for (int i = 0; i < bytes_max && remaining_ > 0; ++i) {
    const auto byte = std::to_integer<uint8_t>(Rest().front());
    Advance(1);
    raw.push_back(static_cast<char>(byte));
    value |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

Segments SliceCursor::Take(size_t bytes) {
  PS_CHECK(bytes <= remaining_);
  Segments taken;
  while (bytes > 0) {
    const ByteSegment rest = Rest();
    const ByteSegment piece = rest.first(std::min(bytes, rest.size()));
    taken.push_back(piece);
    bytes -= piece.size();
    Advance(piece.size());
  }
  return taken;
}

}  // namespace slipstream
