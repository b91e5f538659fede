#include "worker/data/example_values.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include "common/base/check.h"

namespace slipstream {
namespace {

static_assert(std::endian::native == std::endian::little, "files of fp32 are mapped as they are");

/// Returns the bytes of the values, which it keeps.
SharedBytes Keep(std::vector<float> values) {
  const auto kept = std::make_shared<const std::vector<float>>(std::move(values));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(*kept));
  return {{reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, kept};
}

}  // namespace

ByteRows ByteRows::Of(SharedBytes bytes, size_t begin) {
  const size_t size = bytes.bytes.size() - begin;
  return {.pieces = {std::move(bytes)}, .begin = begin, .stride = size, .row_bytes = size};
}

ExampleValues::ExampleValues(std::vector<float> values)
    : ExampleValues(Keep(std::move(values)), 0) {}

ExampleValues::ExampleValues(SharedBytes bytes, size_t begin)
    : size_((bytes.bytes.size() - begin) / sizeof(float)),
      rows_(ByteRows::Of(std::move(bytes), begin)) {}

ExampleValues::ExampleValues(ByteRows rows, std::vector<ByteScale> scales)
    : size_(rows.size()), rows_(std::move(rows)), scales_(std::move(scales)) {
  PS_CHECK(!scales_.empty() && rows_.row_bytes % scales_.size() == 0);
}

void ExampleValues::Read(size_t begin, std::span<float> to) const {
  PS_CHECK(begin <= size_ && to.size() <= size_ - begin);
  if (to.empty()) return;
  if (scales_.empty()) {
    std::memcpy(to.data(), rows_.Row(0) + begin * sizeof(float), to.size_bytes());
    return;
  }
  const size_t part = rows_.row_bytes / scales_.size();
  while (!to.empty()) {
    const size_t in_row = begin % rows_.row_bytes;
    const size_t count = std::min(to.size(), part - in_row % part);
    ScaleBytes({rows_.Row(begin / rows_.row_bytes) + in_row, count}, scales_[in_row / part],
               to.first(count));
    begin += count;
    to = to.subspan(count);
  }
}

std::vector<float> ExampleValues::All() const {
  std::vector<float> values(size_);
  Read(0, values);
  return values;
}

}  // namespace slipstream
