#ifndef SLIPSTREAM_WORKER_DATA_NPY_FILE_H_
#define SLIPSTREAM_WORKER_DATA_NPY_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/data/example_values.h"
#include "worker/data/file_bytes.h"

namespace slipstream {

/// The dictionary at the front of a .npy file, which describes the array behind it.
struct NpyHeader {
  /// The type of an element; kB1 is a truth value, whose byte is 0 if it is false.
  enum class Element { kF4, kF8, kI1, kI2, kI4, kI8, kU1, kU2, kU4, kU8, kB1 };
  Element element = Element::kF4;

  /// The sizes, outermost first. No product of sizes overflows.
  std::vector<uint64_t> shape;

  /// Whether the first size varies fastest in the file; in C order it is the last.
  bool is_fortran = false;

  bool is_big_endian = false;

  size_t element_bytes() const;

  /// The number of values; 1 for an array without dimensions.
  uint64_t values() const;

  friend bool operator==(const NpyHeader&, const NpyHeader&) = default;
};

/// The bytes before the dictionary: magic number, version, and the dictionary's length.
struct NpyPreamble {
  /// The size of the shorter of the two forms. The first bytes say which form it is.
  static constexpr size_t kBytesMin = 10;
  static constexpr size_t kBytesMax = 12;

  /// The limit of NumPy: numbers need about a hundred bytes.
  static constexpr size_t kDictionaryBytesMax = 10'000;

  uint8_t version = 1;
  size_t bytes = 0;
  size_t dictionary_bytes = 0;
};

/// Reads the preamble of format 1.0, 2.0 or 3.0 from the first bytes of a file (kBytesMax of them,
/// if the file has as many). Fails with DATA_LOSS, saying what was found; its text is to follow the
/// path in a message.
absl::StatusOr<NpyPreamble> ParseNpyPreamble(std::string_view bytes);

/// Reads the dictionary of a format's version: a Python literal with the keys descr, fortran_order
/// and shape. Up to version 2 it may have been written by Python 2, which writes 5L for 5. Fails
/// with DATA_LOSS, also for arrays of something else than numbers of up to 64 bits, and says how to
/// save those instead.
absl::StatusOr<NpyHeader> ParseNpyDictionary(std::string_view text, uint8_t version);

/// An open .npy file whose header is valid and whose size matches its header.
///
/// Not thread-safe: one owner.
class NpyFile {
 public:
  /// Receives values in the order of the file, and the position of each in C order. If it fails,
  /// reading ends with its failure.
  using Sink = std::function<absl::Status(std::span<const uint64_t> positions,
                                          std::span<const double> values)>;

  /// Fails with NOT_FOUND or DATA_LOSS; the message starts with the path.
  static absl::StatusOr<NpyFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<uint64_t>& shape() const { return header_.shape; }

  /// The shape as text: "(60000, 28, 28)".
  std::string ShapeText() const;

  /// Returns the index of the value at `position` in C order, as text: "[3, 0, 5]".
  std::string IndexText(uint64_t position) const;

  /// Returns the array where the file holds its values in C order, little-endian: fp32, or bytes
  /// without a sign. They are not checked. Nothing if they are of another kind.
  /// Fails like MapFile.
  absl::StatusOr<std::optional<ExampleValues>> Map(const ReadProgress& progress) const;

  /// Reads all values, in pieces of bounded size. Whole numbers beyond 2^53 are rounded. May be
  /// called only once.
  absl::Status Read(const ReadProgress& progress, const Sink& sink);

 private:
  NpyFile(std::string path, OpenFile file, NpyHeader header, size_t header_bytes)
      : path_(std::move(path)),
        file_(std::move(file)),
        header_(std::move(header)),
        header_bytes_(header_bytes) {}

  std::string path_;
  OpenFile file_;
  NpyHeader header_;
  size_t header_bytes_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_NPY_FILE_H_
