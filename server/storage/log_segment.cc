#include "server/storage/log_segment.h"

#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "common/process/version.h"
#include "server/storage/block_hash.h"
#include "server/storage/checkpoint_paths.h"

namespace slipstream {

std::string SegmentPath(const std::string& directory, uint64_t number) {
  return directory + "/" + SegmentName(number);
}

absl::StatusOr<std::vector<uint64_t>> ListSegments(Disk& disk, const std::string& directory) {
  const absl::StatusOr<std::vector<DiskEntry>> entries = disk.List(directory);
  if (!entries.ok()) return entries.status();
  std::vector<uint64_t> numbers;
  for (const DiskEntry& entry : *entries) {
    if (const std::optional<uint64_t> number = ParseSegmentName(entry.name)) {
      numbers.push_back(*number);
    }
  }
  std::ranges::sort(numbers);
  return numbers;
}

absl::Status RemoveSegmentsBefore(Disk& disk, const std::string& directory, uint64_t first) {
  const absl::StatusOr<std::vector<uint64_t>> numbers = ListSegments(disk, directory);
  if (!numbers.ok()) return numbers.status();
  for (const uint64_t number : *numbers) {
    if (number >= first) break;
    if (absl::Status removed = disk.Remove(SegmentPath(directory, number)); !removed.ok()) {
      return removed;
    }
  }
  return disk.SyncDirectory(directory);
}

absl::StatusOr<LogSegmentWriter> LogSegmentWriter::Create(Disk& disk, const std::string& directory,
                                                          uint64_t number) {
  const absl::StatusOr<std::vector<DiskEntry>> entries = disk.List(directory);
  if (!entries.ok()) return entries.status();
  const auto before = std::ranges::find(*entries, SegmentName(number - 1), &DiskEntry::name);
  const std::string head =
      EncodeHead({.format = kDurableFormat,
                  .program = std::string(kVersion),
                  .number = number,
                  .bytes_before = before == entries->end() ? 0 : before->bytes});
  absl::StatusOr<std::unique_ptr<DiskFile>> file = disk.Create(SegmentPath(directory, number));
  if (!file.ok()) return file.status();
  absl::Status written = (*file)->Append(std::as_bytes(std::span(head)));
  if (written.ok()) written = (*file)->Sync();
  if (written.ok()) written = disk.SyncDirectory(directory);
  if (!written.ok()) return written;
  return LogSegmentWriter(*std::move(file), number);
}

absl::Status LogSegmentWriter::Append(std::span<const Record> records) {
  PS_CHECK(!records.empty());
  return Write(records);
}

absl::Status LogSegmentWriter::Close() { return Write({}); }

absl::Status LogSegmentWriter::Write(std::span<const Record> records) {
  static constexpr std::array<std::byte, kSectorBytes> kZeros{};
  std::vector<uint64_t> lengths;
  lengths.reserve(records.size());  // The parts refer to them.
  Record parts(1);                  // The first one is for the header.
  BatchHeader header = {.segment = number_, .batch = batches_, .records = records.size()};
  for (const Record& record : records) {
    uint64_t& length = lengths.emplace_back(0);
    parts.push_back(std::as_bytes(std::span(&length, 1)));
    for (const std::span<const std::byte> part : record) {
      length += part.size();
      parts.push_back(part);
    }
    header.bytes += sizeof(length) + length;
  }
  const uint64_t unpadded = kBatchHeaderBytes + header.bytes;
  parts.push_back(std::span(kZeros).first(PaddingAfter(unpadded)));
  BlockHasher hasher;
  for (const std::span<const std::byte> part : std::span(parts).subspan(1)) hasher.Add(part);
  header.body = hasher.Finish();
  const std::string encoded = EncodeBatchHeader(header);
  parts.front() = std::as_bytes(std::span(encoded));
  if (absl::Status written = file_->Append(parts); !written.ok()) return written;
  if (absl::Status synced = file_->Sync(); !synced.ok()) return synced;
  ++batches_;
  bytes_ += unpadded + PaddingAfter(unpadded);
  return absl::OkStatus();
}

}  // namespace slipstream
