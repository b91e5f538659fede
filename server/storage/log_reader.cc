#include <fmt/format.h>

#include <algorithm>

#include "server/storage/checkpoint_paths.h"
#include "server/storage/log_segment.h"

namespace slipstream {

absl::StatusOr<LogReader> LogReader::Open(Disk& disk, const std::string& directory,
                                          uint64_t first) {
  absl::StatusOr<std::vector<uint64_t>> numbers = ListSegments(disk, directory);
  if (!numbers.ok()) return numbers.status();
  const auto begin = std::ranges::lower_bound(*numbers, first);
  uint64_t expected = first;
  for (auto number = begin; number != numbers->end() && *number == expected; ++number) ++expected;
  if (expected == first || expected <= numbers->back()) {
    return absl::DataLossError(fmt::format("{}: is missing", SegmentPath(directory, expected)));
  }
  return LogReader(disk, directory, first, numbers->back());
}

absl::StatusOr<std::optional<std::span<const std::byte>>> LogReader::Next() {
  while (next_record_ == records_.size()) {
    if (!reader_) {
      if (absl::Status opened = OpenSegment(); !opened.ok()) return opened;
    }
    auto batch = reader_->Next();
    if (!batch.ok()) return batch.status();
    next_record_ = 0;
    records_.clear();
    if (batch->has_value()) {
      records_ = **std::move(batch);
      continue;
    }
    if (absl::Status ended = EndSegment(); !ended.ok()) return ended;
    if (number_ == newest_) return std::nullopt;
    ++number_;
    reader_.reset();
  }
  return records_[next_record_++];
}

absl::Status LogReader::OpenSegment() {
  absl::StatusOr<LogSegmentReader> opened = LogSegmentReader::Open(*disk_, directory_, number_);
  if (!opened.ok()) return opened.status();
  reader_ = *std::move(opened);
  const std::optional<SegmentHead>& head = reader_->head();
  const bool is_first = end_.whole_bytes == 0;
  if (is_first || !head || head->bytes_before == end_.whole_bytes) return absl::OkStatus();
  return absl::DataLossError(fmt::format(
      "{}: damaged: it ends at byte {}, and ended at byte {} when {} was made",
      SegmentPath(directory_, last_), end_.whole_bytes, head->bytes_before, SegmentName(number_)));
}

absl::Status LogReader::EndSegment() {
  const LogSegmentReader::End& end = reader_->end();
  if (number_ < newest_ && (!reader_->head() || end.torn_bytes > 0)) {
    return absl::DataLossError(
        fmt::format("{}: damaged: bytes {} to {} are no whole batch, and {} follows",
                    SegmentPath(directory_, number_), end.whole_bytes,
                    end.whole_bytes + end.torn_bytes, SegmentName(number_ + 1)));
  }
  if (!reader_->head()) return absl::OkStatus();
  last_ = number_;
  end_ = end;
  return absl::OkStatus();
}

absl::Status LogReader::CutTail() {
  if (last_ < newest_) {
    absl::Status removed = disk_->Remove(SegmentPath(directory_, newest_));
    return removed.ok() ? disk_->SyncDirectory(directory_) : removed;
  }
  // The process before may have failed to sync the last batch, or the head of a segment without
  // batches. It is read whole from the system's memory then. But the system takes it for written,
  // so another sync does nothing, and only writing the bytes again brings them to the disk. They
  // are not cut off first, as somebody may have been told of them. All before them is on the disk:
  // the writer syncs each batch, and each head, before it writes anything else.
  if (absl::Status written = reader_->WriteEndAgain(); !written.ok()) return written;
  const absl::Status cut = disk_->Truncate(SegmentPath(directory_, last_), end_.whole_bytes);
  return cut.ok() ? disk_->SyncDirectory(directory_) : cut;
}

}  // namespace slipstream
