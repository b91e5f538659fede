#ifndef SLIPSTREAM_WORKER_DATA_EXAMPLE_VALUES_H_
#define SLIPSTREAM_WORKER_DATA_EXAMPLE_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/kernels/byte_values.h"
#include "worker/data/mapped_file.h"

namespace slipstream {

/// Rows of bytes in files or in memory: `row_bytes` each, the first of a piece at `begin`, and each
/// `stride` after the one before it. All pieces have `rows` of them.
struct ByteRows {
  std::vector<SharedBytes> pieces;
  size_t begin = 0;
  size_t stride = 0;
  size_t row_bytes = 0;
  size_t rows = 1;

  /// Returns a row without gaps, which is all of `bytes` from `begin` on.
  static ByteRows Of(SharedBytes bytes, size_t begin = 0);

  size_t size() const { return pieces.size() * rows * row_bytes; }

  /// Returns the bytes of a row.
  const uint8_t* Row(size_t index) const {
    return pieces[index / rows].bytes.data() + begin + index % rows * stride;
  }
};

/// The values of a split's examples, one example after another, as their source holds them: bytes
/// or fp32, in a mapped file or in memory. They become fp32 where they are used. So the workers of
/// a machine share one copy of a file, and nothing is converted before training begins.
///
/// Thread-safe: const after construction. Copies share the source.
class ExampleValues {
 public:
  ExampleValues() = default;
  explicit ExampleValues(std::vector<float> values);

  /// The fp32 values, little-endian, of all of `bytes` from `begin` on.
  ExampleValues(SharedBytes bytes, size_t begin);

  /// Bytes. The scales are those of the equal parts that each row has, such as the channels of an
  /// image. REQUIRES: a row divides into that many.
  ExampleValues(ByteRows rows, std::vector<ByteScale> scales);

  size_t size() const { return size_; }

  /// Writes the values from position `begin` on. REQUIRES: there are as many.
  void Read(size_t begin, std::span<float> to) const;

  /// Returns all values.
  std::vector<float> All() const;

 private:
  size_t size_ = 0;
  ByteRows rows_;
  std::vector<ByteScale> scales_;  // Empty if the bytes are fp32 already.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_EXAMPLE_VALUES_H_
