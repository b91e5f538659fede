#include "worker/data/npy_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "worker/data/answers.h"
#include "worker/data/example_values.h"
#include "worker/data/file_bytes.h"
#include "worker/data/npy_file.h"

namespace slipstream {
namespace {

constexpr uint64_t kPositionsMax = 0xffff'ffff;            // Positions in an epoch are 32-bit.
constexpr uint64_t kExampleValuesMax = uint64_t{1} << 28;  // The same limit as for a model's input.

absl::Status CheckCount(const NpyFile& file) {
  if (file.shape().empty() || file.shape()[0] == 0 || file.shape()[0] > kPositionsMax) {
    return absl::DataLossError(fmt::format("{}: shape {}, expected 1 to {} examples", file.path(),
                                           file.ShapeText(), kPositionsMax));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExampleShape> ExampleShapeOf(const NpyFile& file) {
  if (absl::Status status = CheckCount(file); !status.ok()) return status;
  const std::span<const uint64_t> sizes = std::span(file.shape()).subspan(1);
  uint64_t values = 1;
  for (const uint64_t size : sizes) values *= size;  // At most the values that the file has.
  if (sizes.empty() || sizes.size() > 3 || values == 0 || values > kExampleValuesMax) {
    return absl::DataLossError(
        fmt::format("{}: shape {}, expected [N, features], [N, height, width] or "
                    "[N, channels, height, width] with 1 to {} values of an example",
                    file.path(), file.ShapeText(), kExampleValuesMax));
  }
  const auto size = [&](size_t i) { return static_cast<uint32_t>(sizes[i]); };
  if (sizes.size() == 1) return ExampleShape{.channels = size(0)};
  if (sizes.size() == 2) return ExampleShape{.channels = 1, .height = size(0), .width = size(1)};
  return ExampleShape{.channels = size(0), .height = size(1), .width = size(2)};
}

absl::Status Unexpected(const NpyFile& file, uint64_t position, double value,
                        std::string_view expected) {
  return absl::DataLossError(fmt::format("{}: {} at {}, expected {}", file.path(), value,
                                         file.IndexText(position), expected));
}

uint64_t CountValues(const NpyFile& file) {
  uint64_t count = 1;
  for (const uint64_t size : file.shape()) count *= size;
  return count;
}

absl::StatusOr<std::vector<float>> ReadValues(NpyFile& file, const ReadProgress& progress) {
  const uint64_t count = CountValues(file);
  if (absl::Status memory = CheckMemory(file.path(), count * sizeof(float)); !memory.ok()) {
    return memory;
  }
  std::vector<float> floats(count);
  const absl::Status status =
      file.Read(progress, [&](std::span<const uint64_t> positions, std::span<const double> values) {
        for (size_t i = 0; i < values.size(); ++i) {
          if (!IsValue(values[i])) return Unexpected(file, positions[i], values[i], kValueExpected);
          floats[positions[i]] = static_cast<float>(values[i]);
        }
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return floats;
}

constexpr size_t kCheckedValues = size_t{1} << 16;

/// Checks that all values may be used. REQUIRES: they are those of the file.
absl::Status CheckValues(const NpyFile& file, const ExampleValues& values,
                         const ReadProgress& progress) {
  std::vector<float> piece(std::min(values.size(), kCheckedValues));
  for (size_t begin = 0; begin < values.size(); begin += piece.size()) {
    piece.resize(std::min(piece.size(), values.size() - begin));
    values.Read(begin, piece);
    const auto bad = std::ranges::find_if_not(piece, IsValue);
    if (bad != piece.end()) {
      const auto position = begin + static_cast<uint64_t>(bad - piece.begin());
      return Unexpected(file, position, *bad, kValueExpected);
    }
    const auto done = static_cast<double>(begin + piece.size());
    if (progress && !progress(file.path(), done / static_cast<double>(values.size())))
      return absl::CancelledError("stopped");
  }
  return absl::OkStatus();
}

/// Maps the examples where that is possible, else makes them fp32 in memory.
absl::StatusOr<ExampleValues> ReadExamples(NpyFile& file, const ReadProgress& progress) {
  absl::StatusOr<std::optional<ExampleValues>> mapped = file.Map(progress);
  if (!mapped.ok()) return mapped.status();
  if (!mapped->has_value()) {
    absl::StatusOr<std::vector<float>> values = ReadValues(file, progress);
    if (!values.ok()) return values.status();
    return ExampleValues(*std::move(values));
  }
  if (absl::Status status = CheckValues(file, **mapped, progress); !status.ok()) return status;
  return **std::move(mapped);
}

absl::Status ReadLabels(NpyFile& file, const ReadProgress& progress, Dataset& dataset) {
  dataset.labels.resize(file.shape()[0]);
  return file.Read(progress,
                   [&](std::span<const uint64_t> positions, std::span<const double> values) {
                     for (size_t i = 0; i < values.size(); ++i) {
                       if (!IsClass(values[i]))
                         return Unexpected(file, positions[i], values[i], kClassExpected);
                       const auto label = static_cast<uint32_t>(values[i]);
                       dataset.labels[positions[i]] = label;
                       dataset.outputs = std::max(dataset.outputs, label + 1);
                     }
                     return absl::OkStatus();
                   });
}

absl::Status ReadAnswers(const std::string& path, ModelSpec::Loss loss, const NpyFile& examples,
                         const ReadProgress& progress, Dataset& dataset) {
  absl::StatusOr<NpyFile> file = NpyFile::Open(path);
  if (!file.ok()) return file.status();
  if (absl::Status status = CheckCount(*file); !status.ok()) return status;
  const std::vector<uint64_t>& shape = file->shape();
  const uint64_t width = shape.size() == 2 ? shape[1] : 1;
  const bool has_classes = loss == ModelSpec::Loss::kCrossEntropy;
  if (shape.size() > 2 || width == 0 || (has_classes && width > 1) || width > kClassesMax) {
    return absl::DataLossError(
        fmt::format("{}: shape {}, expected {}", path, file->ShapeText(),
                    has_classes ? "[N], one class for each example" : "[N] or [N, targets]"));
  }
  if (shape[0] != examples.shape()[0]) {
    return absl::DataLossError(fmt::format("{}: {} examples, but {} has {}", path, shape[0],
                                           examples.path(), examples.shape()[0]));
  }
  if (has_classes) return ReadLabels(*file, progress, dataset);
  absl::StatusOr<std::vector<float>> targets = ReadValues(*file, progress);
  if (!targets.ok()) return targets.status();
  dataset.targets = *std::move(targets);
  dataset.outputs = static_cast<uint32_t>(width);
  return absl::OkStatus();
}

absl::StatusOr<Dataset> ReadNpySplit(const std::string& directory, std::string_view split,
                                     ModelSpec::Loss loss, const ReadProgress& progress) {
  absl::StatusOr<NpyFile> examples = NpyFile::Open(fmt::format("{}/X_{}.npy", directory, split));
  if (!examples.ok()) return examples.status();
  const absl::StatusOr<ExampleShape> shape = ExampleShapeOf(*examples);
  if (!shape.ok()) return shape.status();
  Dataset dataset;
  dataset.shape = *shape;
  absl::Status status =
      ReadAnswers(fmt::format("{}/y_{}.npy", directory, split), loss, *examples, progress, dataset);
  if (!status.ok()) return status;
  absl::StatusOr<ExampleValues> values = ReadExamples(*examples, progress);
  if (!values.ok()) return values.status();
  dataset.examples = *std::move(values);
  return dataset;
}

}  // namespace

absl::StatusOr<DataSplits> ReadNpy(const std::string& directory, ModelSpec::Loss loss,
                                   const ReadProgress& progress) {
  absl::StatusOr<Dataset> train = ReadNpySplit(directory, "train", loss, progress);
  if (!train.ok()) return train.status();
  absl::StatusOr<Dataset> test = ReadNpyTest(directory, loss, progress);
  if (!test.ok()) return test.status();
  if (test->shape != train->shape) {
    return absl::DataLossError(
        fmt::format("{}/X_test.npy: examples of {}, expected {} as in X_train.npy", directory,
                    ToText(test->shape), ToText(train->shape)));
  }
  if (!train->is_labelled() && test->outputs != train->outputs) {
    return absl::DataLossError(
        fmt::format("{}/y_test.npy: {} targets of an example, expected {} "
                    "as in y_train.npy",
                    directory, test->outputs, train->outputs));
  }
  // A class may occur in only one of the two splits.
  train->outputs = test->outputs = std::max(train->outputs, test->outputs);
  return DataSplits{*std::move(train), *std::move(test)};
}

absl::StatusOr<Dataset> ReadNpyTest(const std::string& directory, ModelSpec::Loss loss,
                                    const ReadProgress& progress) {
  return ReadNpySplit(directory, "test", loss, progress);
}

}  // namespace slipstream
