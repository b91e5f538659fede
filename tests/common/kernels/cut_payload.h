#ifndef SLIPSTREAM_TESTS_COMMON_KERNELS_CUT_PAYLOAD_H_
#define SLIPSTREAM_TESTS_COMMON_KERNELS_CUT_PAYLOAD_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "common/kernels/segments.h"

namespace slipstream {

/// A payload whose bytes are cut into segments at random places, even inside values.
class CutPayload {
 public:
  CutPayload(const std::vector<float>& values, RandomStream& random) {
    const auto bytes = std::as_bytes(std::span(values));
    for (size_t begin = 0; begin < bytes.size();) {
      const size_t length = std::min<size_t>(1 + random.Below(37), bytes.size() - begin);
      // The segment begins at an odd offset in its own buffer, so that all alignments occur.
      std::vector<std::byte> piece(length + 1);
      std::memcpy(piece.data() + 1, bytes.data() + begin, length);
      pieces_.push_back(std::move(piece));
      begin += length;
    }
    for (const auto& piece : pieces_) segments_.push_back(std::span(piece).subspan(1));
  }
  const Segments& segments() const { return segments_; }

 private:
  std::vector<std::vector<std::byte>> pieces_;
  Segments segments_;
};

inline std::vector<float> RandomValues(size_t count, RandomStream& random) {
  std::vector<float> values(count);
  for (float& value : values) value = random.Uniform(-2.0f, 2.0f);
  return values;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_COMMON_KERNELS_CUT_PAYLOAD_H_
