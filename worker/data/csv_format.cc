#include "worker/data/csv_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "worker/data/answers.h"
#include "worker/data/csv_columns.h"
#include "worker/data/csv_lines.h"
#include "worker/data/file_bytes.h"

namespace slipstream {
namespace {

constexpr uint64_t kLinesMax = 0xffff'ffff;  // Positions in an epoch are 32-bit.
constexpr uint64_t kLinesPerReport = 4096;
constexpr double kPasses = 2;

struct Table {
  CsvColumns columns;
  Dataset data;
};

/// Reports to `progress` once in a while; false if it asks to stop. `before`: the share of the work
/// done before this pass over the file, one of two.
bool GoesOn(const CsvLines& lines, const std::string& path, double before,
            const ReadProgress& progress) {
  if (!progress || lines.number() % kLinesPerReport != 0) return true;
  return progress(path, before + lines.share() / kPasses);
}

/// Counts the lines beforehand, so that the examples' memory can be allocated in its final size.
absl::StatusOr<uint64_t> CountLines(const std::string& path, const ReadProgress& progress) {
  absl::StatusOr<CsvLines> lines = CsvLines::Open(path);
  if (!lines.ok()) return lines.status();
  for (;;) {
    const absl::StatusOr<std::optional<std::string_view>> line = lines->Next();
    if (!line.ok()) return line.status();
    if (!*line) return lines->number();
    if (!GoesOn(*lines, path, 0, progress)) return absl::CancelledError("stopped");
  }
}

/// Says what else than plain text a file's first line shows it to be, and what to do; else empty.
std::string CodingOf(std::string_view line) {
  if (line.starts_with("\x1f\x8b")) return "is packed by gzip; unpack it first, with gzip -d";
  if (line.starts_with("\xff\xfe") || line.starts_with("\xfe\xff")) {
    return "is UTF-16; save it as UTF-8";
  }
  return "";
}

/// Reads the lines of one file into a table.
class TableReader {
 public:
  TableReader(const std::string& path, const DataSpec& spec, ModelSpec::Loss loss,
              const ReadProgress& progress)
      : path_(path), spec_(spec), loss_(loss), progress_(progress) {}

  absl::StatusOr<Table> Read() {
    const absl::StatusOr<uint64_t> lines = CountLines(path_, progress_);
    if (!lines.ok()) return lines.status();
    if (*lines == 0) return Wrong("is empty");
    if (*lines > kLinesMax) return Wrong(fmt::format("has more than {} lines", kLinesMax));
    lines_total_ = *lines;
    absl::StatusOr<CsvLines> file = CsvLines::Open(path_);
    if (!file.ok()) return file.status();
    if (absl::Status status = ReadLines(*file); !status.ok()) return status;
    if (examples_ == 0) return Wrong("has no examples");
    table_.data.examples = ExampleValues(std::move(values_));
    return std::move(table_);
  }

 private:
  absl::Status ReadLines(CsvLines& file) {
    uint64_t empty_line = 0;
    for (;;) {
      const absl::StatusOr<std::optional<std::string_view>> line = file.Next();
      if (!line.ok()) return line.status();
      if (!*line) return absl::OkStatus();
      line_ = file.number();
      // Empty lines at the end of the file are ignored.
      if (line->value().empty()) {
        if (empty_line == 0) empty_line = line_;
        continue;
      }
      if (empty_line != 0) return Wrong(fmt::format("line {} is empty", empty_line));
      if (line_ == 1 && !CodingOf(**line).empty()) return Wrong(CodingOf(**line));
      if (!SplitCsvRow(**line, fields_)) {
        return Wrong(
            fmt::format("line {}: a field begins with \" and does not end with one", line_));
      }
      if (absl::Status status = TakeLine(); !status.ok()) return status;
      if (!GoesOn(file, path_, 1 / kPasses, progress_)) return absl::CancelledError("stopped");
    }
  }

  absl::Status TakeLine() {
    if (table_.columns.count > 0) return TakeRow();
    absl::StatusOr<CsvColumns> columns = FindCsvColumns(fields_, spec_);
    if (!columns.ok()) return Wrong(std::string(columns.status().message()));
    table_.columns = *std::move(columns);
    Dataset& data = table_.data;
    data.shape.channels = static_cast<uint32_t>(table_.columns.features.size());
    const bool has_header = !table_.columns.names.empty();
    const uint64_t rows = lines_total_ - (has_header ? 1 : 0);
    const uint64_t values = rows * table_.columns.count;
    if (absl::Status memory = CheckMemory(path_, values * sizeof(float)); !memory.ok()) {
      return memory;
    }
    values_.reserve(rows * table_.columns.features.size());
    if (HasClasses()) {
      data.labels.reserve(rows);
    } else {
      data.outputs = static_cast<uint32_t>(table_.columns.labels.size());
      data.targets.reserve(rows * data.outputs);
    }
    return has_header ? absl::OkStatus() : TakeRow();
  }

  absl::Status TakeRow() {
    if (fields_.size() != table_.columns.count) {
      return Wrong(fmt::format("line {}: found {} columns, expected {} as in line 1", line_,
                               fields_.size(), table_.columns.count));
    }
    for (const size_t column : table_.columns.features) {
      const std::optional<double> value = ParseCsvNumber(fields_[column].text);
      if (!value || !IsValue(*value)) return Unexpected(column, kValueExpected);
      values_.push_back(static_cast<float>(*value));
    }
    for (const size_t column : table_.columns.labels) {
      const std::optional<double> value = ParseCsvNumber(fields_[column].text);
      if (!value || !IsAnswer(*value, loss_)) return Unexpected(column, AnswerExpected(loss_));
      TakeAnswer(*value);
    }
    ++examples_;
    return absl::OkStatus();
  }

  void TakeAnswer(double value) {
    Dataset& data = table_.data;
    if (!HasClasses()) {
      data.targets.push_back(static_cast<float>(value));
      return;
    }
    data.labels.push_back(static_cast<uint32_t>(value));
    data.outputs = std::max(data.outputs, data.labels.back() + 1);
  }

  bool HasClasses() const { return loss_ == ModelSpec::Loss::kCrossEntropy; }

  absl::Status Unexpected(size_t column, std::string_view expected) const {
    return Wrong(fmt::format("line {}, {}: found {}, expected {}", line_,
                             table_.columns.Describe(column),
                             DescribeCsvField(fields_[column].text), expected));
  }

  absl::Status Wrong(const std::string& what) const {
    return absl::DataLossError(fmt::format("{}: {}", path_, what));
  }

  const std::string& path_;
  const DataSpec& spec_;
  const ModelSpec::Loss loss_;
  const ReadProgress& progress_;

  uint64_t lines_total_ = 0;
  uint64_t line_ = 0;
  uint64_t examples_ = 0;
  std::vector<CsvField> fields_;
  std::vector<float> values_;  // Of the examples.
  Table table_;
};

}  // namespace

absl::StatusOr<DataSplits> ReadCsv(const DataSpec& spec, ModelSpec::Loss loss,
                                   const ReadProgress& progress) {
  const std::string train_path = spec.path + "/train.csv";
  const std::string test_path = spec.path + "/test.csv";
  absl::StatusOr<Table> train = TableReader(train_path, spec, loss, progress).Read();
  if (!train.ok()) return train.status();
  absl::StatusOr<Table> test = TableReader(test_path, spec, loss, progress).Read();
  if (!test.ok()) return test.status();
  if (test->columns.count != train->columns.count) {
    return absl::DataLossError(fmt::format("{}: {} columns, expected {} as in train.csv", test_path,
                                           test->columns.count, train->columns.count));
  }
  if (test->columns.names != train->columns.names) {
    return absl::DataLossError(
        fmt::format("{}: expected the header of train.csv, or none in both files", test_path));
  }
  // A class may occur in only one of the two splits.
  const uint32_t outputs = std::max(train->data.outputs, test->data.outputs);
  train->data.outputs = outputs;
  test->data.outputs = outputs;
  return DataSplits{std::move(train->data), std::move(test->data)};
}

absl::StatusOr<Dataset> ReadCsvTest(const DataSpec& spec, ModelSpec::Loss loss,
                                    const ReadProgress& progress) {
  const std::string path = spec.path + "/test.csv";
  absl::StatusOr<Table> test = TableReader(path, spec, loss, progress).Read();
  if (!test.ok()) return test.status();
  return std::move(test->data);
}

}  // namespace slipstream
