#ifndef SLIPSTREAM_WORKER_DATA_NPY_FILE_H_
#define SLIPSTREAM_WORKER_DATA_NPY_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/data/file_bytes.h"
#include "worker/data/npy_header.h"
#include "worker/data/read_progress.h"

namespace slipstream {

/// An open .npy file whose header is valid and whose size matches its header.
///
/// Not thread-safe: one owner.
class NpyFile {
 public:
  /// Receives the values from position `first` on, in order. If it fails, reading ends with its
  /// failure.
  using Sink = std::function<absl::Status(uint64_t first, std::span<const double> values)>;

  /// Fails with NOT_FOUND or DATA_LOSS; the message starts with the path.
  static absl::StatusOr<NpyFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<uint64_t>& shape() const { return header_.shape; }

  /// The shape as text: "(60000, 28, 28)".
  std::string ShapeText() const;

  /// Returns the index of the value at `position` in C order, as text: "[3, 0, 5]".
  std::string IndexText(uint64_t position) const;

  /// Reads all values, in pieces of bounded size. Whole numbers beyond 2^53 are rounded. May be
  /// called only once.
  absl::Status Read(const ReadProgress& progress, const Sink& sink);

 private:
  NpyFile(std::string path, OpenFile file, NpyHeader header)
      : path_(std::move(path)), file_(std::move(file)), header_(std::move(header)) {}

  std::string path_;
  OpenFile file_;
  NpyHeader header_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_NPY_FILE_H_
