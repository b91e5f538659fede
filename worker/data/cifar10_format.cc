#include "worker/data/cifar10_format.h"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <utility>

#include "worker/data/file_bytes.h"

namespace slipstream {
namespace {

constexpr ExampleShape kShape = {.channels = 3, .height = 32, .width = 32};
constexpr size_t kPixelBytes = size_t{3} * 32 * 32;
constexpr size_t kRecordBytes = 1 + kPixelBytes;
constexpr int kTrainFiles = 5;

/// Appends the records of the file at `path` to `examples`.
absl::Status AppendFile(const std::string& path, size_t records, const ReadProgress& progress,
                        RawExamples& examples) {
  absl::StatusOr<Bytes> bytes = ReadUnpacked(path, progress);
  if (!bytes.ok()) return bytes.status();
  if (bytes->size() != records * kRecordBytes) {
    return absl::DataLossError(
        fmt::format("{}: {}: {} bytes, expected {} ({} records of {})", path,
                    bytes->size() < records * kRecordBytes ? "truncated" : "too long",
                    bytes->size(), records * kRecordBytes, records, kRecordBytes));
  }
  examples.pixels.reserve(examples.pixels.size() + records * kPixelBytes);
  for (size_t record = 0; record < records; ++record) {
    const auto fields = std::span(*bytes).subspan(record * kRecordBytes, kRecordBytes);
    if (fields[0] >= kClasses) {
      return absl::DataLossError(fmt::format("{}: label {} of record {}, expected 0 to {}", path,
                                             fields[0], record, kClasses - 1));
    }
    examples.labels.push_back(fields[0]);
    examples.pixels.insert(examples.pixels.end(), fields.begin() + 1, fields.end());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RawSplits> ReadCifar10(const std::string& directory, size_t records_per_file,
                                      const ReadProgress& progress) {
  RawSplits splits;
  splits.train.shape = kShape;
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
  RawExamples test;
  test.shape = kShape;
  absl::Status status = AppendFile(directory + "/test_batch.bin", records_per_file, progress, test);
  if (!status.ok()) return status;
  return test;
}

}  // namespace slipstream
