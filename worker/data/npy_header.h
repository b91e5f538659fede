#ifndef SLIPSTREAM_WORKER_DATA_NPY_HEADER_H_
#define SLIPSTREAM_WORKER_DATA_NPY_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace slipstream {

/// What the dictionary at the front of a .npy file says of the array behind it.
struct NpyHeader {
  /// Little-endian numbers; a truth value is a byte of 0 or 1.
  enum class Element { kF4, kF8, kI1, kI2, kI4, kI8, kU1, kU2, kU4, kU8 };
  Element element = Element::kF4;

  /// Outermost first; the values are in C order. No product of sizes overflows.
  std::vector<uint64_t> shape;

  size_t element_bytes() const;

  /// 1 for an array without dimensions.
  uint64_t values() const;

  friend bool operator==(const NpyHeader&, const NpyHeader&) = default;
};

/// The bytes in front of the dictionary: magic number, version, the dictionary's length.
struct NpyPreamble {
  /// Of the shorter of the two forms there are, which says how long it is itself.
  static constexpr size_t kBytesMin = 10;
  static constexpr size_t kBytesMax = 12;

  /// A dictionary that is longer is damaged: ours need about a hundred bytes.
  static constexpr size_t kDictionaryBytesMax = 65'535;

  size_t bytes = 0;
  size_t dictionary_bytes = 0;
};

/// Reads the preamble of format 1.0, 2.0 or 3.0 from the first bytes of a file, kBytesMax if it has
/// as many. Fails with DATA_LOSS saying what was found, for a message behind the path.
absl::StatusOr<NpyPreamble> ParseNpyPreamble(std::string_view bytes);

/// Reads the dictionary, a Python literal with descr, fortran_order and shape, and nothing but
/// these. Fails with DATA_LOSS, also for arrays that are not read here (Fortran order, big-endian,
/// objects, text, complex and structured values), and says how to save them instead.
absl::StatusOr<NpyHeader> ParseNpyDictionary(std::string_view text);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_NPY_HEADER_H_
