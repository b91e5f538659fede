#ifndef SLIPSTREAM_TESTS_SERVER_STORAGE_FLIPPED_BITS_H_
#define SLIPSTREAM_TESTS_SERVER_STORAGE_FLIPPED_BITS_H_

#include <cstddef>

namespace slipstream {

#ifdef SLIPSTREAM_SANITIZER
/// The distance between the bits that a test flips one after another. Under a sanitizer, where
/// reading takes ten times as long, that is one bit of nearly every byte.
inline constexpr size_t kFlippedBitStep = 9;
#else
inline constexpr size_t kFlippedBitStep = 1;
#endif

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_STORAGE_FLIPPED_BITS_H_
