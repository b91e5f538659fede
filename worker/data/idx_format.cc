#include "worker/data/idx_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/data/mapped_file.h"

namespace slipstream {
namespace {

// Magic numbers: two zero bytes, 8 for unsigned bytes, the number of dimensions.
constexpr uint32_t kImagesMagic = 0x00000803;
constexpr uint32_t kLabelsMagic = 0x00000801;

constexpr uint32_t kExamplesMax = 10'000'000;
constexpr uint32_t kSideMax = 1024;

struct IdxFile {
  std::string path;
  std::vector<uint32_t> dimensions;
  SharedBytes file;

  size_t header_bytes() const { return 4 + 4 * dimensions.size(); }
  std::span<const uint8_t> values() const { return file.bytes.subspan(header_bytes()); }
};

uint32_t BigEndian(std::span<const uint8_t> bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

/// Finds the file of a split's `kind`, such as images-idx3-ubyte, among the names in use: plain or
/// packed, and with the dot that some unpackers make of the second hyphen.
absl::StatusOr<std::string> FindIdxFile(const std::string& directory, std::string_view split,
                                        const std::string& kind) {
  const std::string name = fmt::format("{}/{}-{}", directory, split, kind);
  std::string dotted = name;
  dotted[dotted.rfind("-idx")] = '.';
  for (const std::string& path : {name, name + ".gz", dotted, dotted + ".gz"}) {
    if (FileExists(path)) return path;
  }
  return absl::NotFoundError(fmt::format("{}: no such file, neither plain nor as .gz, nor as {}",
                                         name, dotted.substr(directory.size() + 1)));
}

absl::Status CheckDimensions(const IdxFile& file) {
  const uint32_t count = file.dimensions[0];
  if (count == 0 || count > kExamplesMax) {
    return absl::DataLossError(
        fmt::format("{}: announces {} examples, expected 1 to {}", file.path, count, kExamplesMax));
  }
  for (const uint32_t side : std::span(file.dimensions).subspan(1)) {
    if (side == 0 || side > kSideMax) {
      return absl::DataLossError(
          fmt::format("{}: announces images {} pixels wide or high, "
                      "expected 1 to {}",
                      file.path, side, kSideMax));
    }
  }
  return absl::OkStatus();
}

/// Reads the file at `path`, plain or packed, which must carry `magic` and hold exactly what its
/// header announces.
absl::StatusOr<IdxFile> ReadIdxFile(const absl::StatusOr<std::string>& path, uint32_t magic,
                                    const ReadProgress& progress) {
  if (!path.ok()) return path.status();
  absl::StatusOr<SharedBytes> bytes = MapOrUnpack(*path, progress);
  if (!bytes.ok()) return bytes.status();
  IdxFile file = {*path, std::vector<uint32_t>(magic & 0xff), std::move(*bytes)};

  const std::span<const uint8_t> header = file.file.bytes;
  const size_t header_bytes = file.header_bytes();
  const size_t file_bytes = header.size();
  if (file_bytes >= 4 && BigEndian(header) != magic) {
    return absl::DataLossError(fmt::format("{}: magic number {:#010x}, expected {:#010x}",
                                           file.path, BigEndian(header), magic));
  }
  if (file_bytes < header_bytes) {
    return absl::DataLossError(fmt::format("{}: truncated: {} bytes, expected a header of {}",
                                           file.path, file_bytes, header_bytes));
  }
  uint64_t values_expected = 1;
  for (size_t i = 0; i < file.dimensions.size(); ++i) {
    file.dimensions[i] = BigEndian(header.subspan(4 + 4 * i));
  }
  if (absl::Status status = CheckDimensions(file); !status.ok()) return status;
  for (const uint32_t dimension : file.dimensions) values_expected *= dimension;
  if (file_bytes - header_bytes != values_expected) {
    return absl::DataLossError(fmt::format(
        "{}: {}: {} bytes after the header, expected {} as its header announces", file.path,
        file_bytes - header_bytes < values_expected ? "truncated" : "too long",
        file_bytes - header_bytes, values_expected));
  }
  return file;
}

absl::StatusOr<RawExamples> ReadSplit(const std::string& directory, std::string_view split,
                                      const ReadProgress& progress) {
  absl::StatusOr<IdxFile> images =
      ReadIdxFile(FindIdxFile(directory, split, "images-idx3-ubyte"), kImagesMagic, progress);
  if (!images.ok()) return images.status();
  absl::StatusOr<IdxFile> labels =
      ReadIdxFile(FindIdxFile(directory, split, "labels-idx1-ubyte"), kLabelsMagic, progress);
  if (!labels.ok()) return labels.status();

  if (labels->dimensions[0] != images->dimensions[0]) {
    return absl::DataLossError(fmt::format("{}: {} labels, expected {}, one for each image of {}",
                                           labels->path, labels->dimensions[0],
                                           images->dimensions[0], images->path));
  }
  const std::span<const uint8_t> classes = labels->values();
  const auto bad = std::ranges::find_if(classes, [](uint8_t label) { return label >= kClasses; });
  if (bad != classes.end()) {
    return absl::DataLossError(fmt::format("{}: label {} of example {}, expected 0 to {}",
                                           labels->path, *bad, bad - classes.begin(),
                                           kClasses - 1));
  }
  return RawExamples{
      .shape = {.channels = 1, .height = images->dimensions[1], .width = images->dimensions[2]},
      .pixels = ByteRows::Of(images->file, images->header_bytes()),
      .labels = {classes.begin(), classes.end()}};
}

}  // namespace

absl::StatusOr<RawSplits> ReadIdx(const std::string& directory, const ReadProgress& progress) {
  absl::StatusOr<RawExamples> train = ReadSplit(directory, "train", progress);
  if (!train.ok()) return train.status();
  absl::StatusOr<RawExamples> test = ReadIdxTest(directory, progress);
  if (!test.ok()) return test.status();
  if (test->shape != train->shape) {
    return absl::DataLossError(fmt::format(
        "{}/t10k-images-idx3-ubyte: images of {}×{} pixels, expected {}×{} as in the training set",
        directory, test->shape.height, test->shape.width, train->shape.height, train->shape.width));
  }
  return RawSplits{std::move(*train), std::move(*test)};
}

absl::StatusOr<RawExamples> ReadIdxTest(const std::string& directory,
                                        const ReadProgress& progress) {
  return ReadSplit(directory, "t10k", progress);
}

}  // namespace slipstream
