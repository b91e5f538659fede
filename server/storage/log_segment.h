#ifndef SLIPSTREAM_SERVER_STORAGE_LOG_SEGMENT_H_
#define SLIPSTREAM_SERVER_STORAGE_LOG_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/storage/disk.h"
#include "server/storage/log_format.h"

namespace slipstream {

// The write-ahead log of one shard: files log-<number>, each a segment, which follow each other by
// their numbers without a gap. A segment is a head and batches. A batch holds whole records, and
// begins at a multiple of kSectorBytes. A batch is begun only when the one before is on the disk.
// So if a batch is damaged and something of a later one is there, or a later segment, it was on the
// disk once, and that is an error. Other damage at the end is what a crash leaves of a batch that
// nobody was told of: a torn tail.

/// Returns the path of a segment.
std::string SegmentPath(const std::string& directory, uint64_t number);

/// Returns the numbers of the segments in the directory, rising. Failures are those of Disk.
absl::StatusOr<std::vector<uint64_t>> ListSegments(Disk& disk, const std::string& directory);

/// Removes the segments below `first`, oldest first, so that those that stay have no gap.
absl::Status RemoveSegmentsBefore(Disk& disk, const std::string& directory, uint64_t first);

/// Writes one segment.
///
/// Not thread-safe: one owner.
class LogSegmentWriter {
 public:
  /// Makes the file, with its head. Its name is on the disk when this returns. Fails if it is
  /// there. REQUIRES: the segment before, if there is one, has its final size: it was closed, or
  /// its tail was cut.
  static absl::StatusOr<LogSegmentWriter> Create(Disk& disk, const std::string& directory,
                                                 uint64_t number);

  /// The parts of one record, one after another; they may lie anywhere.
  using Record = std::vector<std::span<const std::byte>>;

  /// Writes the records as one batch, which is on the disk when this returns OK. After a failure
  /// nobody knows what is there: the owner must not go on. REQUIRES: there is a record, and the
  /// segment is not closed.
  absl::Status Append(std::span<const Record> records);

  /// Writes an empty batch, by which readers know that nothing is missing behind the last one.
  absl::Status Close();

  /// The size of the file.
  uint64_t bytes() const { return bytes_; }

 private:
  LogSegmentWriter(std::unique_ptr<DiskFile> file, uint64_t number)
      : file_(std::move(file)), number_(number), bytes_(kSectorBytes) {}

  absl::Status Write(std::span<const Record> records);

  std::unique_ptr<DiskFile> file_;
  uint64_t number_ = 0;
  uint64_t batches_ = 0;
  uint64_t bytes_ = 0;
};

/// Reads one segment, batch by batch; holds one batch in memory. Bytes that are added to the file
/// after Open are not seen.
///
/// Not thread-safe: one owner.
class LogSegmentReader {
 public:
  /// NOT_FOUND if there is no such segment, DATA_LOSS with its path if its head is damaged,
  /// FAILED_PRECONDITION if a later release wrote it. A file without a whole head
  /// and without anything behind it is what a crash leaves of Create: a torn tail from byte 0.
  static absl::StatusOr<LogSegmentReader> Open(Disk& disk, const std::string& directory,
                                               uint64_t number);

  /// The head; nothing if it is not whole.
  const std::optional<SegmentHead>& head() const { return head_; }

  /// Returns the records of the next batch; nothing at the end. DATA_LOSS with path and position if
  /// the batch is damaged though it was once on the disk. The spans are valid until the next call.
  absl::StatusOr<std::optional<std::vector<std::span<const std::byte>>>> Next();

  /// The position in the file of the batch that Next returned last.
  uint64_t position() const { return position_; }

  /// How the segment ends. REQUIRES: Next returned nothing.
  struct End {
    /// The bytes up to the end of the last whole batch; 0 if not even the head is whole.
    uint64_t whole_bytes = 0;

    /// The bytes behind it, of a batch that was never complete.
    uint64_t torn_bytes = 0;
    bool is_closed = false;
  };
  const End& end() const { return end_; }

  /// Writes the last whole batch over itself, or the head if there is no batch. It is on the disk
  /// when this returns OK, also if a process before could not sync it. DATA_LOSS with path and
  /// position if it is not whole any more. The spans of Next end.
  /// REQUIRES: Next returned nothing, and the head is whole.
  absl::Status WriteEndAgain();

 private:
  LogSegmentReader(Disk& disk, std::string path, uint64_t number, uint64_t bytes)
      : disk_(&disk), path_(std::move(path)), number_(number), bytes_(bytes) {}

  using Records = std::vector<std::span<const std::byte>>;

  absl::Status ReadHead();

  /// Notes that nothing more is whole.
  std::nullopt_t EndHere();

  /// Returns the header at a position; nothing if there is none.
  absl::StatusOr<std::optional<BatchHeader>> ReadHeader(uint64_t position);

  /// Reads the batch with this header at the end of what was whole so far. Returns whether it is
  /// whole.
  absl::StatusOr<bool> ReadBatch(const BatchHeader& header, uint64_t batch_end);

  /// Returns the records of the batch that was read.
  absl::StatusOr<Records> RecordsOf(const BatchHeader& header) const;

  /// Returns the position of the first header of a later batch than the next one, from the next
  /// one's position on; nothing if there is none.
  absl::StatusOr<std::optional<uint64_t>> FindLaterBatch();

  Disk* disk_;
  std::string path_;
  uint64_t number_;
  uint64_t bytes_;
  std::optional<SegmentHead> head_;
  uint64_t batches_ = 0;
  uint64_t position_ = 0;          // Where the last whole batch begins, or the head.
  std::vector<std::byte> buffer_;  // All of a batch but its header; all in WriteEndAgain.
  End end_;                        // What was whole so far, and then all.
  bool is_at_end_ = false;
};

/// Reads the records from segment `first` on to the newest. Only the newest segment may end with a
/// torn batch.
///
/// Not thread-safe: one owner.
class LogReader {
 public:
  /// DATA_LOSS, naming it, if a segment is missing. `disk` must outlive the reader.
  static absl::StatusOr<LogReader> Open(Disk& disk, const std::string& directory, uint64_t first);

  /// Returns the next record; nothing at the end. Fails as LogSegmentReader does, and with
  /// DATA_LOSS if a segment before the newest does not end where it ended when the next one was
  /// made. The span is valid until the next call.
  absl::StatusOr<std::optional<std::span<const std::byte>>> Next();

  /// The segment of the record returned last.
  uint64_t segment() const { return number_; }

  /// The position in the segment of the batch that has this record. REQUIRES: Next returned one.
  uint64_t position() const { return reader_->position(); }

  /// The newest segment that has a whole head, and how it ends; first - 1 if there is none. The
  /// next segment to make is the one behind it. REQUIRES: Next returned nothing.
  uint64_t last() const { return last_; }
  const LogSegmentReader::End& end() const { return end_; }

  /// Cuts off the torn batch, so that later readers find the segment whole, and removes a newer
  /// segment without a whole head. All that was read is on the disk when this returns OK.
  /// REQUIRES: Next returned nothing.
  absl::Status CutTail();

 private:
  LogReader(Disk& disk, std::string directory, uint64_t first, uint64_t newest)
      : disk_(&disk),
        directory_(std::move(directory)),
        newest_(newest),
        number_(first),
        last_(first - 1) {}

  /// Opens the segment `number_`, and compares the end of the one before with its head.
  absl::Status OpenSegment();

  /// Notes how the segment ends that was read. Fails if another one follows, and it is torn.
  absl::Status EndSegment();

  Disk* disk_;
  std::string directory_;
  uint64_t newest_;
  uint64_t number_;
  std::optional<LogSegmentReader> reader_;  // The reader of `number_`.
  std::vector<std::span<const std::byte>> records_;
  size_t next_record_ = 0;
  uint64_t last_;
  LogSegmentReader::End end_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_LOG_SEGMENT_H_
