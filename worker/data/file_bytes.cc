#include "worker/data/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/process/process_limits.h"

namespace slipstream {
namespace {

constexpr uint64_t kSmallBytes = uint64_t{64} << 20;

}  // namespace

absl::Status CheckMemory(const std::string& name, uint64_t bytes) {
  if (bytes < kSmallBytes) return absl::OkStatus();
  const uint64_t available = ReadMemoryBytes().available;
  if (bytes <= available) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "{}: no memory for the data: {} bytes are needed, {} are free; use a machine with "
      "more, fewer workers on this one, or less data",
      name, bytes, available));
}

namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

// Tells zlib to accept only a gzip header and trailer: 15 window bits + 16.
constexpr int kGzipWindowBits = 15 + 16;

struct EndInflate {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

double Share(uint64_t done, uint64_t total) {
  return total == 0 ? 1 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
}

absl::Status Damaged(const std::string& path, const z_stream& stream) {
  const std::string_view reason = stream.msg != nullptr ? stream.msg : "unknown";
  if (reason == "incorrect data check") {
    return absl::DataLossError(fmt::format(
        "{}: the gzip CRC of the unpacked bytes does not match the one in the file", path));
  }
  if (reason == "incorrect length check") {
    return absl::DataLossError(fmt::format(
        "{}: unpacks to {} bytes, which is not the length in the file", path, stream.total_out));
  }
  return absl::DataLossError(fmt::format("{}: not a sound gzip file: {}", path, reason));
}

/// Unpacks the first member of `packed`, appends it to `unpacked`, and drops it from `packed`.
absl::Status InflateMember(std::span<const uint8_t>& packed, const std::string& path,
                           size_t bytes_max, const std::function<bool()>& goes_on,
                           Bytes& unpacked) {
  z_stream stream = {};
  PS_CHECK(inflateInit2(&stream, kGzipWindowBits) == Z_OK);
  const std::unique_ptr<z_stream, EndInflate> end(&stream);

  int result = Z_OK;
  while (result != Z_STREAM_END) {
    if (!goes_on()) return absl::CancelledError("stopped");
    const size_t piece = std::min(packed.size(), kPieceBytes);
    const size_t room = std::min(kPieceBytes, bytes_max + 1 - unpacked.size());
    const size_t filled = unpacked.size();
    unpacked.resize(filled + room);
    // zlib only reads from it; its type predates const.
    stream.next_in = const_cast<uint8_t*>(packed.data());
    stream.avail_in = static_cast<uInt>(piece);
    stream.next_out = unpacked.data() + filled;
    stream.avail_out = static_cast<uInt>(room);

    result = inflate(&stream, Z_NO_FLUSH);
    packed = packed.subspan(piece - stream.avail_in);
    unpacked.resize(filled + room - stream.avail_out);
    if (unpacked.size() > bytes_max) {
      return absl::DataLossError(
          fmt::format("{}: unpacks to more than {} bytes, the most accepted", path, bytes_max));
    }
    if (result == Z_BUF_ERROR || (result == Z_OK && packed.empty() && stream.avail_out > 0)) {
      return absl::DataLossError(fmt::format(
          "{}: truncated: the gzip stream ends after {} unpacked bytes", path, unpacked.size()));
    }
    if (result != Z_OK && result != Z_STREAM_END) return Damaged(path, stream);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OpenFile> OpenToRead(const std::string& path) {
  // O_NONBLOCK, because opening a pipe would otherwise block until somebody writes to it.
  const int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    return absl::NotFoundError(fmt::format("{}: cannot be opened: {}", path, strerror(errno)));
  }
  OpenFile file(fdopen(descriptor, "rb"));
  PS_CHECK(file != nullptr);
  const absl::StatusOr<uint64_t> bytes = FileBytes(file, path);
  if (!bytes.ok()) return bytes.status();
  return file;
}

absl::StatusOr<uint64_t> FileBytes(const OpenFile& file, const std::string& path) {
  struct stat found = {};
  if (fstat(fileno(file.get()), &found) != 0 || !S_ISREG(found.st_mode)) {
    return absl::DataLossError(fmt::format("{}: is no ordinary file", path));
  }
  return static_cast<uint64_t>(found.st_size);
}

bool FileExists(const std::string& path) {
  struct stat found = {};
  return stat(path.c_str(), &found) == 0 && !S_ISDIR(found.st_mode);
}

bool IsGzip(std::span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

absl::StatusOr<Bytes> Gunzip(std::span<const uint8_t> packed, const std::string& path,
                             size_t bytes_max, const ReadProgress& progress) {
  const size_t total = packed.size();
  const auto goes_on = [&] {
    return !progress || progress(path, Share(total - packed.size(), total));
  };
  Bytes unpacked;
  do {
    absl::Status status = InflateMember(packed, path, bytes_max, goes_on, unpacked);
    if (!status.ok()) return status;
    const auto padding = std::ranges::find_if(packed, [](uint8_t byte) { return byte != 0; });
    packed = packed.subspan(static_cast<size_t>(padding - packed.begin()));
  } while (IsGzip(packed));
  if (!packed.empty()) {
    return absl::DataLossError(
        fmt::format("{}: {} bytes follow the end of the gzip stream", path, packed.size()));
  }
  return unpacked;
}

}  // namespace slipstream
