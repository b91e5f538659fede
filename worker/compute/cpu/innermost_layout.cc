#include "worker/compute/cpu/innermost_layout.h"

#include <algorithm>

#include "common/base/check.h"

namespace slipstream {
namespace {

// The side of a tile, in elements and in examples. Both layouts traverse a tile while it is in the
// first-level cache: it has one cache line of elements in each of that many examples.
constexpr size_t kTile = 16;

// Calls copy(element, example) for all pairs, tile by tile.
template <typename Copy>
void ForEachInTiles(size_t elements, size_t examples, Copy copy) {
  for (size_t example = 0; example < examples; example += kTile) {
    const size_t examples_end = std::min(example + kTile, examples);
    for (size_t element = 0; element < elements; element += kTile) {
      const size_t elements_end = std::min(element + kTile, elements);
      for (size_t e = element; e < elements_end; ++e) {
        for (size_t x = example; x < examples_end; ++x) copy(e, x);
      }
    }
  }
}

}  // namespace

void ToInnermost(const PlainExamples<const float>& plain, uint32_t images, float* innermost) {
  PS_CHECK(images >= plain.count);
  ForEachInTiles(plain.elements, plain.count, [&](size_t element, size_t example) {
    innermost[element * images + example] = plain.values[example * plain.elements + element];
  });
  for (size_t element = 0; element < plain.elements; ++element) {
    std::fill(innermost + element * images + plain.count, innermost + (element + 1) * images, 0.0f);
  }
}

void FromInnermost(const float* innermost, uint32_t images, const PlainExamples<float>& plain) {
  PS_CHECK(images >= plain.count);
  ForEachInTiles(plain.elements, plain.count, [&](size_t element, size_t example) {
    plain.values[example * plain.elements + element] = innermost[element * images + example];
  });
}

}  // namespace slipstream
