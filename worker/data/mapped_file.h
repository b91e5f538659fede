#ifndef SLIPSTREAM_WORKER_DATA_MAPPED_FILE_H_
#define SLIPSTREAM_WORKER_DATA_MAPPED_FILE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "worker/data/file_bytes.h"

namespace slipstream {

/// Bytes in memory or in a mapped file, which live as long as any copy of this.
struct SharedBytes {
  std::span<const uint8_t> bytes;
  std::shared_ptr<const void> owner;

  SharedBytes() = default;
  SharedBytes(std::span<const uint8_t> lent, std::shared_ptr<const void> lender)
      : bytes(lent), owner(std::move(lender)) {}
  explicit SharedBytes(Bytes own);
};

/// Maps the whole file, and brings it into the system's page cache, which all processes of a
/// machine share. Where its file system maps no files, the file is read into memory.
///
/// A mapped file must not be written to, or made shorter. Replacing it by another (mv) does no harm
/// on a local file system; on NFS the old bytes may be gone. If a page cannot be had any more, as
/// whole ones are cut off, the program ends with a message that names the file, and kIo.
///
/// Fails with NOT_FOUND if it cannot be opened, DATA_LOSS if it cannot be read or has more than
/// `bytes_max` bytes, RESOURCE_EXHAUSTED if memory or room for addresses is too short to hold it,
/// and CANCELLED if `progress` asked to stop; the message names the path.
absl::StatusOr<SharedBytes> MapFile(const std::string& path, uint64_t bytes_max = kFileBytesMax,
                                    const ReadProgress& progress = {});

/// Does the same for an open file.
absl::StatusOr<SharedBytes> MapFile(const OpenFile& file, const std::string& path,
                                    uint64_t bytes_max, const ReadProgress& progress);

/// Returns the bytes of the files that this process has mapped now. The system counts their pages
/// as free memory, but the data are needed.
uint64_t MappedBytes();

/// Maps the whole file, or unpacks it into memory if it is a gzip file, whatever its name. Fails
/// like MapFile and Gunzip.
absl::StatusOr<SharedBytes> MapOrUnpack(const std::string& path, const ReadProgress& progress);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_MAPPED_FILE_H_
