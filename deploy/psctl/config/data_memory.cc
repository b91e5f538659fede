#include "deploy/psctl/config/data_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace slipstream {
namespace {

constexpr uint64_t kCifar10FileBytes = uint64_t{10'000} * 3073;
constexpr uint64_t kCifar10Files = 6;
constexpr uint64_t kCifar10Examples = 60'000;
constexpr uint64_t kCsvSampleBytes = uint64_t{1} << 20;

/// The memory of one file's values.
struct FileMemory {
  uint64_t bytes = 0;
  bool is_mapped = true;
};

void Add(const FileMemory& file, DataMemory& memory) {
  (file.is_mapped ? memory.shared : memory.each) += file.bytes;
}

/// Returns a file's bytes from `at` on, fewer at its end.
std::string Take(const std::string& path, uint64_t at, size_t count) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  std::string bytes(count, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

std::optional<uint64_t> SizeOf(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) return std::nullopt;
  return size;
}

/// Finds an IDX file as worker/data/idx_format does. The last four bytes of a packed one say what
/// it unpacks to.
std::optional<FileMemory> IdxFile(const std::string& name) {
  std::string dotted = name;
  dotted[dotted.rfind("-idx")] = '.';
  for (const std::string& path : {name, name + ".gz", dotted, dotted + ".gz"}) {
    const std::optional<uint64_t> size = SizeOf(path);
    if (!size) continue;
    if (*size < 18 || Take(path, 0, 2) != "\x1f\x8b") return FileMemory{*size};
    uint32_t unpacked = 0;
    std::memcpy(&unpacked, Take(path, *size - sizeof(unpacked), sizeof(unpacked)).data(),
                sizeof(unpacked));
    return FileMemory{unpacked, false};
  }
  return std::nullopt;
}

/// Examples that are bytes or fp32 are mapped; others, and all answers, become values of four
/// bytes.
std::optional<FileMemory> NpyFile(const std::string& path, bool are_answers) {
  const std::optional<uint64_t> size = SizeOf(path);
  if (!size) return std::nullopt;
  const std::string header = Take(path, 0, 256);
  const auto has = [&header](std::string_view text) {
    return header.find(text) != std::string::npos;
  };
  const bool can_be_mapped = has("'fortran_order': False") && (has("'<f4'") || has("'|u1'"));
  if (can_be_mapped && !are_answers) return FileMemory{*size};
  constexpr std::string_view kKey = "'descr': '";
  const size_t width_at = header.find(kKey) + kKey.size() + 2;
  const char width = width_at < header.size() ? header[width_at] : '4';
  const bool is_known = width >= '1' && width <= '8';
  return FileMemory{*size / (is_known ? width - '0' : 4) * sizeof(float), false};
}

/// A table's values become fp32. They are as dense in all of it as at its begin.
std::optional<FileMemory> CsvFile(const std::string& path) {
  const std::optional<uint64_t> size = SizeOf(path);
  if (!size) return std::nullopt;
  const std::string begin = Take(path, 0, std::min<uint64_t>(*size, kCsvSampleBytes));
  if (begin.empty()) return FileMemory{0, false};
  const auto values = std::ranges::count_if(begin, [](char c) { return c == ',' || c == '\n'; });
  const double density = static_cast<double>(values) / static_cast<double>(begin.size());
  const double bytes = density * static_cast<double>(*size) * sizeof(float);
  return FileMemory{static_cast<uint64_t>(bytes), false};
}

std::optional<DataMemory> OfIdx(const DataSpec& data, uint64_t answer_bytes) {
  DataMemory memory;
  for (const char* split : {"train", "t10k"}) {
    const auto images = IdxFile(fmt::format("{}/{}-images-idx3-ubyte", data.path, split));
    const auto labels = IdxFile(fmt::format("{}/{}-labels-idx1-ubyte", data.path, split));
    if (!images || !labels) return std::nullopt;
    Add(*images, memory);
    memory.each += labels->bytes * answer_bytes;  // A byte for each label.
  }
  return memory;
}

std::optional<DataMemory> OfNpy(const DataSpec& data) {
  DataMemory memory;
  for (const char* split : {"train", "test"}) {
    const auto examples = NpyFile(fmt::format("{}/X_{}.npy", data.path, split), false);
    const auto answers = NpyFile(fmt::format("{}/y_{}.npy", data.path, split), true);
    if (!examples || !answers) return std::nullopt;
    Add(*examples, memory);
    Add(*answers, memory);
  }
  return memory;
}

std::optional<DataMemory> OfCsv(const DataSpec& data) {
  DataMemory memory;
  for (const char* split : {"train", "test"}) {
    const auto table = CsvFile(fmt::format("{}/{}.csv", data.path, split));
    if (!table) return std::nullopt;
    Add(*table, memory);
  }
  return memory;
}

}  // namespace

std::optional<DataMemory> DataMemoryNeeded(const RunSpec& run, const NetShapes& net) {
  if (run.data.from == SuppliedBy::kWorkers) return std::nullopt;
  const DataSpec& data = run.data;
  // A class, or a target for each output.
  const bool has_classes = run.model.loss == ModelSpec::Loss::kCrossEntropy;
  const uint64_t answer_bytes = sizeof(float) * (has_classes ? 1 : net.outputs());
  switch (data.format) {
    case DataSpec::Format::kSynthetic: {
      const uint64_t examples = uint64_t{data.train_examples} + data.test_examples;
      return DataMemory{.each = examples * (net.input().elements() + answer_bytes)};
    }
    case DataSpec::Format::kCifar10:
      return DataMemory{.shared = kCifar10Files * kCifar10FileBytes,
                        .each = kCifar10Examples * answer_bytes};
    case DataSpec::Format::kIdx:
      return OfIdx(data, answer_bytes);
    case DataSpec::Format::kNpy:
      return OfNpy(data);
    case DataSpec::Format::kCsv:
      return OfCsv(data);
  }
  return std::nullopt;
}

}  // namespace slipstream
