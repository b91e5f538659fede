#ifndef SLIPSTREAM_SERVER_STORAGE_LOG_FORMAT_H_
#define SLIPSTREAM_SERVER_STORAGE_LOG_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "server/storage/block_hash.h"

namespace slipstream {

// The bytes of a segment of a shard's log. README.md in this folder describes them.

/// A disk writes whole sectors, so one that was being written when the machine stopped holds the
/// old bytes or the new ones.
inline constexpr size_t kSectorBytes = 512;

/// The first sector of a segment.
struct SegmentHead {
  uint64_t format = 0;  // kDurableFormat of the program that wrote it.

  /// The version of the program that wrote the segment.
  std::string program;
  uint64_t number = 0;

  /// The size that the segment before had when this one was made; 0 if there was none.
  uint64_t bytes_before = 0;

  friend bool operator==(const SegmentHead&, const SegmentHead&) = default;
};

/// The header of a batch. Its records follow, each behind its length, and then zeros up to the
/// end of the sector.
struct BatchHeader {
  uint64_t segment = 0;

  /// The batch's place in the segment, from 0.
  uint64_t batch = 0;

  /// The bytes of the records with their lengths.
  uint64_t bytes = 0;

  /// 0 in the batch that closes a segment.
  uint64_t records = 0;

  /// The hash of all that follows the header, up to the end of the last sector.
  BlockHash body;

  friend bool operator==(const BatchHeader&, const BatchHeader&) = default;
};

inline constexpr size_t kBatchHeaderBytes = 72;

/// Returns kSectorBytes bytes.
std::string EncodeHead(const SegmentHead& head);

/// Returns the head at the beginning of `bytes`; nothing if there is none with a right checksum. Of
/// a head of another format, only format and program have a meaning.
std::optional<SegmentHead> DecodeHead(std::span<const std::byte> bytes);

/// Returns kBatchHeaderBytes bytes.
std::string EncodeBatchHeader(const BatchHeader& header);

/// Returns the header at the beginning of `bytes`; nothing if there is none with a right checksum.
std::optional<BatchHeader> DecodeBatchHeader(std::span<const std::byte> bytes);

/// The number of zeros behind so many bytes, up to the end of the sector.
constexpr size_t PaddingAfter(uint64_t bytes) {
  return (kSectorBytes - bytes % kSectorBytes) % kSectorBytes;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_LOG_FORMAT_H_
