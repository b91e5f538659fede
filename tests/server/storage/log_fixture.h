#ifndef SLIPSTREAM_TESTS_SERVER_STORAGE_LOG_FIXTURE_H_
#define SLIPSTREAM_TESTS_SERVER_STORAGE_LOG_FIXTURE_H_

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/storage/log_segment.h"

namespace slipstream {

inline constexpr char kLogDirectory[] = "/log";

/// Records that are written together.
using Batch = std::vector<std::string>;

/// Returns a record whose bytes a seed draws.
inline std::string RecordOf(uint64_t seed, size_t bytes) {
  std::mt19937_64 random(seed);
  std::string record(bytes, '\0');
  for (char& byte : record) byte = static_cast<char>(random());
  return record;
}

/// Writes a batch. Each record has three parts, and one of them is empty.
inline absl::Status WriteBatch(LogSegmentWriter& writer, const Batch& batch) {
  std::vector<LogSegmentWriter::Record> records;
  for (const std::string& record : batch) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(record));
    const size_t half = bytes.size() / 2;
    records.push_back({bytes.first(half), {}, bytes.subspan(half)});
  }
  return writer.Append(records);
}

/// The content of a log.
struct LogContent {
  std::vector<std::string> records;
  uint64_t last = 0;
  LogSegmentReader::End end;
};

/// Reads all records that are left.
inline absl::StatusOr<LogContent> ReadRest(LogReader& reader) {
  LogContent content;
  while (true) {
    const auto record = reader.Next();
    if (!record.ok()) return record.status();
    if (!record->has_value()) break;
    content.records.emplace_back(reinterpret_cast<const char*>((*record)->data()),
                                 (*record)->size());
  }
  content.last = reader.last();
  content.end = reader.end();
  return content;
}

inline absl::StatusOr<LogContent> ReadLog(Disk& disk, uint64_t first = 1) {
  absl::StatusOr<LogReader> reader = LogReader::Open(disk, kLogDirectory, first);
  if (!reader.ok()) return reader.status();
  return ReadRest(*reader);
}

/// Reads the log and cuts its tail, as a server does that goes on from it.
inline absl::StatusOr<LogContent> ReadAndCutLog(Disk& disk, uint64_t first = 1) {
  absl::StatusOr<LogReader> reader = LogReader::Open(disk, kLogDirectory, first);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<LogContent> content = ReadRest(*reader);
  if (!content.ok()) return content;
  if (absl::Status cut = reader->CutTail(); !cut.ok()) return cut;
  return content;
}

/// Returns the records of the first `count` batches.
inline std::vector<std::string> RecordsOf(std::span<const Batch> batches, size_t count) {
  std::vector<std::string> records;
  for (const Batch& batch : batches.first(count)) {
    records.insert(records.end(), batch.begin(), batch.end());
  }
  return records;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_STORAGE_LOG_FIXTURE_H_
