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
void Bf16Run(const UnalignedHalf* __restrict values, Word* __restrict out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = BitsOfBf16(values[i]);
}

SLIPSTREAM_CPU_DISPATCH
void Fp16Run(const UnalignedHalf* __restrict values, Word* __restrict out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = BitsOfFp16(values[i]);
}

}  // namespace

void DecodeBf16(const Segments& segments, std::span<float> out) {
  PS_CHECK(TotalBytes(segments) == out.size() * sizeof(uint16_t));
  ForEachRun<sizeof(uint16_t)>(segments,
                               [out](size_t position, const std::byte* values, size_t count) {
                                 Bf16Run(reinterpret_cast<const UnalignedHalf*>(values),
                                         reinterpret_cast<Word*>(out.data() + position), count);
                               });
}

void DecodeFp16(const Segments& segments, std::span<float> out) {
  PS_CHECK(TotalBytes(segments) == out.size() * sizeof(uint16_t));
  ForEachRun<sizeof(uint16_t)>(segments,
                               [out](size_t position, const std::byte* values, size_t count) {
                                 Fp16Run(reinterpret_cast<const UnalignedHalf*>(values),
                                         reinterpret_cast<Word*>(out.data() + position), count);
                               });
}

}  // namespace slipstream
