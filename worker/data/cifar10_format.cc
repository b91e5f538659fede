#include "worker/data/cifar10_format.h"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <utility>

#include "worker/data/mapped_file.h"

namespace slipstream {
namespace {

constexpr ExampleShape kShape = {.channels = 3, .height = 32, .width = 32};
constexpr size_t kPixelBytes = size_t{3} * 32 * 32;
constexpr size_t kRecordBytes = 1 + kPixelBytes;
constexpr int kTrainFiles = 5;

/// Appends the records of the file at `path` to `examples`.
absl::Status AppendFile(const std::string& path, size_t records, const ReadProgress& progress,
                        RawExamples& examples) {
  absl::StatusOr<SharedBytes> file = MapOrUnpack(path, progress);
  if (!file.ok()) return file.status();
  const std::span<const uint8_t> bytes = file->bytes;
  if (bytes.size() != records * kRecordBytes) {
    return absl::DataLossError(
        fmt::format("{}: {}: {} bytes, expected {} ({} records of {})", path,
                    bytes.size() < records * kRecordBytes ? "truncated" : "too long", bytes.size(),
                    records * kRecordBytes, records, kRecordBytes));
  }
  for (size_t record = 0; record < records; ++record) {
    const uint8_t label = bytes[record * kRecordBytes];
    if (label >= kClasses) {
      return absl::DataLossError(fmt::format("{}: label {} of record {}, expected 0 to {}", path,
                                             label, record, kClasses - 1));
    }
    examples.labels.push_back(label);
  }
  examples.pixels.pieces.push_back(*std::move(file));
  return absl::OkStatus();
}

/// Returns examples of files yet to be appended.
RawExamples NoExamples(size_t records_per_file) {
  return {.shape = kShape,
          .pixels = {.pieces = {},
                     .begin = 1,
                     .stride = kRecordBytes,
                     .row_bytes = kPixelBytes,
                     .rows = records_per_file},
          .labels = {}};
}

}  // namespace

absl::StatusOr<RawSplits> ReadCifar10(const std::string& directory, size_t records_per_file,
                                      const ReadProgress& progress) {
  RawSplits splits = {.train = NoExamples(records_per_file), .test = {}};
  for (int file = 1; file <= kTrainFiles; ++file) {
    const std::string path = fmt::format("{}/data_batch_{}.bin", directory, file);
    absl::Status status = AppendFile(path, records_per_file, progress, splits.train);
    if (!status.ok()) return status;
  }
  absl::StatusOr<RawExamples> test = ReadCifar10Test(directory, records_per_file, progress);
  if (!test.ok()) return test.status();
  splits.test = *std::move(test);
  return splits;
}

absl::StatusOr<RawExamples> ReadCifar10Test(const std::string& directory, size_t records_per_file,
                                            const ReadProgress& progress) {
  RawExamples test = NoExamples(records_per_file);
  absl::Status status = AppendFile(directory + "/test_batch.bin", records_per_file, progress, test);
  if (!status.ok()) return status;
  return test;
}

}  // namespace slipstream
