#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/process/version.h"
#include "server/storage/block_hash.h"
#include "server/storage/checkpoint_paths.h"
#include "server/storage/log_segment.h"

namespace slipstream {
namespace {

// The bytes that the search for a later batch reads at a time.
constexpr uint64_t kSearchBytes = uint64_t{1} << 20;
static_assert(kSearchBytes % kSectorBytes == 0);

absl::Status DamagedBytes(const std::string& path, uint64_t begin, uint64_t end, const char* why) {
  return absl::DataLossError(fmt::format("{}: damaged: bytes {} to {} {}", path, begin, end, why));
}

}  // namespace

absl::StatusOr<LogSegmentReader> LogSegmentReader::Open(Disk& disk, const std::string& directory,
                                                        uint64_t number) {
  const absl::StatusOr<std::vector<DiskEntry>> entries = disk.List(directory);
  if (!entries.ok()) return entries.status();
  const auto entry = std::ranges::find(*entries, SegmentName(number), &DiskEntry::name);
  const std::string path = SegmentPath(directory, number);
  if (entry == entries->end()) return absl::NotFoundError(fmt::format("{}: is missing", path));
  LogSegmentReader reader(disk, path, number, entry->bytes);
  if (absl::Status read = reader.ReadHead(); !read.ok()) return read;
  return reader;
}

absl::Status LogSegmentReader::ReadHead() {
  std::vector<std::byte> sector(std::min<uint64_t>(bytes_, kSectorBytes));
  if (absl::Status read = disk_->ReadAt(path_, 0, sector); !read.ok()) return read;
  head_ = DecodeHead(sector);
  if (!head_ && bytes_ <= kSectorBytes) {
    EndHere();
    return absl::OkStatus();
  }
  // The first batch is written once the head is on the disk.
  if (!head_) return DamagedBytes(path_, 0, kSectorBytes, "are not the head of a log's segment");
  if (const std::string why = WhyUnreadable(head_->format, head_->program); !why.empty()) {
    return absl::FailedPreconditionError(fmt::format("{}: {}", path_, why));
  }
  if (head_->number != number_) {
    return absl::DataLossError(fmt::format("{}: is {}", path_, SegmentName(head_->number)));
  }
  end_.whole_bytes = kSectorBytes;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<BatchHeader>> LogSegmentReader::ReadHeader(uint64_t position) {
  std::byte bytes[kBatchHeaderBytes];
  if (bytes_ - position < sizeof(bytes)) return std::nullopt;
  if (absl::Status read = disk_->ReadAt(path_, position, bytes); !read.ok()) return read;
  return DecodeBatchHeader(bytes);
}

std::nullopt_t LogSegmentReader::EndHere() {
  is_at_end_ = true;
  end_.torn_bytes = bytes_ - end_.whole_bytes;
  return std::nullopt;
}

absl::StatusOr<std::optional<std::vector<std::span<const std::byte>>>> LogSegmentReader::Next() {
  const uint64_t position = end_.whole_bytes;
  if (is_at_end_ || position == bytes_) return EndHere();
  const absl::StatusOr<std::optional<BatchHeader>> found = ReadHeader(position);
  if (!found.ok()) return found.status();
  const std::optional<BatchHeader>& header = *found;
  if (!header || header->segment != number_ || header->batch != batches_) {
    const absl::StatusOr<std::optional<uint64_t>> later = FindLaterBatch();
    if (!later.ok()) return later.status();
    if (*later)
      return DamagedBytes(path_, position, **later, "are no batch, and a later batch follows");
    return EndHere();
  }
  // The sum cannot overflow where the records fit into the file.
  const uint64_t unpadded = position + kBatchHeaderBytes + header->bytes;
  const uint64_t batch_end = unpadded + PaddingAfter(unpadded);
  if (header->bytes > bytes_ || batch_end > bytes_) return EndHere();
  const absl::StatusOr<bool> is_whole = ReadBatch(*header, batch_end);
  if (!is_whole.ok()) return is_whole.status();
  if (!*is_whole && batch_end < bytes_) {
    return DamagedBytes(path_, position, batch_end, "have a wrong checksum, and more bytes follow");
  }
  if (!*is_whole) return EndHere();
  absl::StatusOr<Records> records = RecordsOf(*header);
  if (!records.ok()) return records.status();
  position_ = position;
  end_.whole_bytes = batch_end;
  ++batches_;
  end_.is_closed = records->empty();
  if (end_.is_closed) return EndHere();
  return *std::move(records);
}

absl::Status LogSegmentReader::WriteEndAgain() {
  buffer_.resize(end_.whole_bytes - position_);
  if (absl::Status read = disk_->ReadAt(path_, position_, buffer_); !read.ok()) return read;
  bool is_whole = false;
  if (position_ == 0) {
    is_whole = DecodeHead(buffer_).has_value();
  } else {
    const std::optional<BatchHeader> header = DecodeBatchHeader(buffer_);
    is_whole = header && HashOf(std::span(buffer_).subspan(kBatchHeaderBytes)) == header->body;
  }
  // The system may forget bytes that it could not write. Then it reads those that the disk has.
  if (!is_whole) {
    return DamagedBytes(path_, position_, end_.whole_bytes,
                        "were whole before, and are not any more");
  }
  return disk_->WriteAt(path_, position_, buffer_);
}

absl::StatusOr<bool> LogSegmentReader::ReadBatch(const BatchHeader& header, uint64_t batch_end) {
  const uint64_t begin = end_.whole_bytes + kBatchHeaderBytes;
  buffer_.resize(batch_end - begin);
  if (absl::Status read = disk_->ReadAt(path_, begin, buffer_); !read.ok()) return read;
  return HashOf(buffer_) == header.body;
}

absl::StatusOr<LogSegmentReader::Records> LogSegmentReader::RecordsOf(
    const BatchHeader& header) const {
  Records records;
  std::span<const std::byte> left = std::span(buffer_).first(header.bytes);
  while (!left.empty()) {
    uint64_t length = 0;
    if (left.size() < sizeof(length)) break;
    std::memcpy(&length, left.data(), sizeof(length));
    left = left.subspan(sizeof(length));
    if (left.size() < length) break;
    records.push_back(left.first(length));
    left = left.subspan(length);
  }
  if (!left.empty() || records.size() != header.records) {
    return absl::DataLossError(fmt::format(
        "{}: the checksum of the batch at byte {} is right, but its records do not fill it", path_,
        end_.whole_bytes));
  }
  return records;
}

absl::StatusOr<std::optional<uint64_t>> LogSegmentReader::FindLaterBatch() {
  std::vector<std::byte> buffer;
  for (uint64_t begin = end_.whole_bytes; begin < bytes_; begin += kSearchBytes) {
    buffer.resize(std::min(kSearchBytes, bytes_ - begin));
    if (absl::Status read = disk_->ReadAt(path_, begin, buffer); !read.ok()) return read;
    for (size_t at = 0; at < buffer.size(); at += kSectorBytes) {
      const std::optional<BatchHeader> header = DecodeBatchHeader(std::span(buffer).subspan(at));
      if (header && header->segment == number_ && header->batch > batches_) return begin + at;
    }
  }
  return std::nullopt;
}

}  // namespace slipstream
