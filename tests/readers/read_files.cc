// Reads many files as the workers do, and prints a line of JSON for each: what was read, or why it
// was refused. differential_test.py compares it with what other readers read.

#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/json/json_text.h"
#include "common/model_file/model_file.h"
#include "common/settings/run_spec.h"
#include "tests/support/example_values.h"
#include "worker/data/csv_format.h"
#include "worker/data/idx_format.h"
#include "worker/data/npy_file.h"

namespace slipstream {
namespace {

using Json = nlohmann::json;

template <typename Value>
uint64_t Checksum(const std::vector<Value>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

absl::StatusOr<Json> ReadNpyFile(const std::string& path) {
  absl::StatusOr<NpyFile> file = NpyFile::Open(path);
  if (!file.ok()) return file.status();
  uint64_t count = 1;
  for (const uint64_t size : file->shape()) count *= size;
  std::vector<double> all(count);
  absl::Status read =
      file->Read({}, [&](std::span<const uint64_t> positions, std::span<const double> values) {
        for (size_t i = 0; i < values.size(); ++i) all[positions[i]] = values[i];
        return absl::OkStatus();
      });
  if (!read.ok()) return read;
  return Json{{"shape", file->shape()}, {"values", Checksum(all)}};
}

absl::StatusOr<Json> ReadModel(const std::string& path) {
  const absl::StatusOr<ModelFile> file = ModelFile::Open(path);
  if (!file.ok()) return file.status();
  std::vector<float> weights(file->layout().parameters());
  if (absl::Status read = file->Read(file->layout(), weights); !read.ok()) return read;
  Json tensors = Json::array();
  for (const Tensor& tensor : file->layout().tensors()) {
    tensors.push_back({tensor.name, tensor.shape});
  }
  return Json{{"tensors", tensors}, {"metadata", file->metadata()}, {"values", Checksum(weights)}};
}

absl::StatusOr<Json> ReadImages(const std::string& path) {
  const absl::StatusOr<RawExamples> images = ReadIdxTest(path);
  if (!images.ok()) return images.status();
  return Json{{"shape", {images->labels.size(), images->shape.height, images->shape.width}},
              {"values", Checksum(BytesOf(images->pixels))},
              {"labels", Checksum(images->labels)}};
}

absl::StatusOr<Json> ReadTable(const std::string& path, DataSpec::Header header) {
  const absl::StatusOr<Dataset> table =
      ReadCsvTest({.path = path, .header = header}, ModelSpec::Loss::kMse, {});
  if (!table.ok()) return table.status();
  return Json{{"shape", {table->count(), table->shape.elements()}},
              {"values", Checksum(table->examples.All())},
              {"labels", Checksum(table->targets)}};
}

absl::StatusOr<Json> Read(std::string_view kind, const std::string& path) {
  if (kind == "npy") return ReadNpyFile(path);
  if (kind == "safetensors") return ReadModel(path);
  if (kind == "idx") return ReadImages(path);
  if (kind == "csv") return ReadTable(path, DataSpec::Header::kAuto);
  if (kind == "csv_with_header") return ReadTable(path, DataSpec::Header::kPresent);
  if (kind == "csv_without_header") return ReadTable(path, DataSpec::Header::kAbsent);
  return absl::InvalidArgumentError(fmt::format("no reader \"{}\"", kind));
}

/// Reads PATH as KIND for every argument KIND:PATH.
int Main(std::span<char* const> arguments) {
  for (const std::string_view argument : arguments) {
    const size_t colon = argument.find(':');
    const absl::StatusOr<Json> read =
        Read(argument.substr(0, colon), std::string(argument.substr(colon + 1)));
    const Json line = read.ok() ? *read : Json{{"refused", std::string(read.status().message())}};
    std::fputs(JsonLine(line).c_str(), stdout);
  }
  return 0;
}

}  // namespace
}  // namespace slipstream

int main(int count, char** arguments) {
  return slipstream::Main(std::span(arguments, static_cast<size_t>(count)).subspan(1));
}
