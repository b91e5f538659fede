#ifndef SLIPSTREAM_WORKER_DATA_FILE_BYTES_H_
#define SLIPSTREAM_WORKER_DATA_FILE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace slipstream {

/// Called now and then with the share, in [0, 1], of a file that has been read or of a set that has
/// been made. Returns false to stop; reading then fails with CANCELLED. May be empty.
using ReadProgress = std::function<bool(const std::string& path, double share)>;

/// Checks whether this process can still allocate `bytes` bytes for the data called `name`. Call it
/// before allocating: a system that promises more memory than it has later kills a process without
/// a message. Fails with RESOURCE_EXHAUSTED, naming both numbers. Sizes below 64 MiB always pass.
absl::Status CheckMemory(const std::string& name, uint64_t bytes);

using Bytes = std::vector<uint8_t>;

/// The most bytes that a data file may have, packed or unpacked: about 40 times the published sets.
/// A larger file is the wrong one, or a small one that unpacks without end.
inline constexpr size_t kFileBytesMax = size_t{2} << 30;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// A file that is closed on destruction.
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;

/// Opens a file for reading. Fails with NOT_FOUND if the file cannot be opened; the message starts
/// with the path.
absl::StatusOr<OpenFile> OpenToRead(const std::string& path);

/// Returns the size of an open file in bytes. Fails with DATA_LOSS if it has none, as with a pipe.
absl::StatusOr<uint64_t> FileBytes(const OpenFile& file, const std::string& path);

/// Returns whether there is something at `path` that is no directory.
bool FileExists(const std::string& path);

/// Returns whether these are the bytes of a gzip file, by the two that it begins with.
bool IsGzip(std::span<const uint8_t> bytes);

/// Unpacks the bytes of a gzip file, whose members are concatenated as gzip(1) does. Zero bytes
/// behind a member are padding. Fails with DATA_LOSS if the stream is cut short, damaged (its CRC
/// or length does not match), followed by something else, or unpacks to more than `bytes_max`
/// bytes, and with CANCELLED if `progress` asked to stop. `path` is used only for messages.
absl::StatusOr<Bytes> Gunzip(std::span<const uint8_t> packed, const std::string& path,
                             size_t bytes_max = kFileBytesMax, const ReadProgress& progress = {});

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_FILE_BYTES_H_
