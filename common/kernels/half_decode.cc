#include "common/kernels/half_decode.h"

#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/kernels/float_runs.h"
#include "common/kernels/half_values.h"

namespace slipstream {
namespace {

/// A value that may start at any byte.
using UnalignedHalf __attribute__((aligned(1), may_alias)) = uint16_t;

/// Results are stored as words: a signalling NaN keeps its bits wherever floats are moved through
/// registers that would change it.
using Word __attribute__((may_alias)) = uint32_t;

SLIPSTREAM_CPU_DISPATCH
void DecodeBf16Run(const UnalignedHalf* __restrict values, Word* __restrict out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = BitsOfBf16(values[i]);
}

SLIPSTREAM_CPU_DISPATCH
void DecodeFp16Run(const UnalignedHalf* __restrict values, Word* __restrict out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = BitsOfFp16(values[i]);
}

template <typename Run>
void Decode(const Segments& segments, std::span<float> out, Run run) {
  PS_CHECK(TotalBytes(segments) == out.size() * sizeof(uint16_t));
  ForEachRun<UnalignedHalf>(segments,
                            [&](size_t position, const UnalignedHalf* values, size_t count) {
                              run(values, reinterpret_cast<Word*>(out.data() + position), count);
                            });
}

}  // namespace

void DecodeBf16(const Segments& segments, std::span<float> out) {
  Decode(segments, out, DecodeBf16Run);
}

void DecodeFp16(const Segments& segments, std::span<float> out) {
  Decode(segments, out, DecodeFp16Run);
}

}  // namespace slipstream
