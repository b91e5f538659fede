#ifndef SLIPSTREAM_TESTS_SUPPORT_EXAMPLE_VALUES_H_
#define SLIPSTREAM_TESTS_SUPPORT_EXAMPLE_VALUES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "worker/compute/plan.h"
#include "worker/data/dataset.h"

namespace slipstream {

/// Returns the values of one example.
inline std::vector<float> ExampleOf(const Dataset& data, size_t index) {
  std::vector<float> values(data.shape.elements());
  data.examples.Read(index * values.size(), values);
  return values;
}

/// Returns the bytes of all rows, one after another.
inline std::vector<uint8_t> BytesOf(const ByteRows& rows) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < rows.pieces.size() * rows.rows; ++i) {
    bytes.insert(bytes.end(), rows.Row(i), rows.Row(i) + rows.row_bytes);
  }
  return bytes;
}

/// Replaces `count` values of the examples, from the one at `begin` on.
inline void SetValues(Dataset& data, size_t begin, size_t count, float value) {
  std::vector<float> values = data.examples.All();
  std::ranges::fill(std::span(values).subspan(begin, count), value);
  data.examples = ExampleValues(std::move(values));
}

/// Returns a table of examples that lie in memory, and must outlive it.
inline ExampleTable TableOf(std::span<const float> examples, std::span<const uint32_t> labels,
                            std::span<const float> targets = {}) {
  const auto read = [examples](size_t begin, std::span<float> to) {
    std::ranges::copy(examples.subspan(begin, to.size()), to.begin());
  };
  return {.values = examples.size(), .read = read, .labels = labels, .targets = targets};
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_EXAMPLE_VALUES_H_
