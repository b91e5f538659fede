#ifndef SLIPSTREAM_WORKER_DATA_FILE_BYTES_H_
#define SLIPSTREAM_WORKER_DATA_FILE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/read_progress.h"

namespace slipstream {

using Bytes = std::vector<uint8_t>;

/// A data file, packed or not, may have this many bytes: about 40 times the published sets. More
/// is a wrong file, or a small one that unpacks without end.
inline constexpr size_t kFileBytesMax = size_t{2} << 30;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// Closes itself.
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;

/// Fails with NOT_FOUND if the file cannot be opened; the message starts with the
/// path.
absl::StatusOr<OpenFile> OpenToRead(const std::string& path);

/// The size of an open file. Fails with DATA_LOSS if it has none, as a pipe.
absl::StatusOr<uint64_t> FileBytes(const OpenFile& file, const std::string& path);

bool FileExists(const std::string& path);

/// The whole file. Fails with NOT_FOUND where it cannot be opened, DATA_LOSS where it cannot be
/// read to its end or has more than `bytes_max` bytes, RESOURCE_EXHAUSTED where memory is short,
/// CANCELLED if `progress` said so; the message names the path.
absl::StatusOr<Bytes> ReadFileBytes(const std::string& path, size_t bytes_max = kFileBytesMax,
                                    const ReadProgress& progress = {});

/// Unpacks a gzip file's bytes, whose members are concatenated as gzip(1) does. Fails with
/// DATA_LOSS where the stream is cut short, damaged (its CRC or length does not match), followed
/// by something else, or unpacks to more than `bytes_max` bytes, and with CANCELLED if `progress`
/// said so. `path` is for messages only.
absl::StatusOr<Bytes> Gunzip(std::span<const uint8_t> packed, const std::string& path,
                             size_t bytes_max = kFileBytesMax, const ReadProgress& progress = {});

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_FILE_BYTES_H_
