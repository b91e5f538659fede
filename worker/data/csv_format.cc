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

/// Reads the lines of one file into a table.
class TableReader {
 public:
  TableReader(const std::string& path, const std::vector<std::string>& label_columns,
              ModelSpec::Loss loss, const ReadProgress& progress)
      : path_(path), label_columns_(label_columns), loss_(loss), progress_(progress) {}

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
      SplitCsvRow(**line, fields_);
      if (absl::Status status = TakeLine(); !status.ok()) return status;
      if (!GoesOn(file, path_, 1 / kPasses, progress_)) return absl::CancelledError("stopped");
    }
  }

  absl::Status TakeLine() {
    if (table_.columns.count > 0) return TakeRow();
    absl::StatusOr<CsvColumns> columns = FindCsvColumns(fields_, label_columns_);
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
    data.examples.reserve(rows * table_.columns.features.size());
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
    Dataset& data = table_.data;
    for (const size_t column : table_.columns.features) {
      const std::optional<double> value = ParseCsvNumber(fields_[column]);
      if (!value || !IsValue(*value)) return Unexpected(column, kValueExpected);
      data.examples.push_back(static_cast<float>(*value));
    }
    for (const size_t column : table_.columns.labels) {
      const std::optional<double> value = ParseCsvNumber(fields_[column]);
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
                             table_.columns.Describe(column), DescribeCsvField(fields_[column]),
                             expected));
  }

  absl::Status Wrong(const std::string& what) const {
    return absl::DataLossError(fmt::format("{}: {}", path_, what));
  }

  const std::string& path_;
  const std::vector<std::string>& label_columns_;
  const ModelSpec::Loss loss_;
  const ReadProgress& progress_;

  uint64_t lines_total_ = 0;
  uint64_t line_ = 0;
  uint64_t examples_ = 0;
  std::vector<std::string_view> fields_;
  Table table_;
};

}  // namespace

absl::StatusOr<DataSplits> ReadCsv(const std::string& directory,
                                   const std::vector<std::string>& label_columns,
                                   ModelSpec::Loss loss, const ReadProgress& progress) {
  const std::string train_path = directory + "/train.csv";
  const std::string test_path = directory + "/test.csv";
  absl::StatusOr<Table> train = TableReader(train_path, label_columns, loss, progress).Read();
  if (!train.ok()) return train.status();
  absl::StatusOr<Table> test = TableReader(test_path, label_columns, loss, progress).Read();
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

absl::StatusOr<Dataset> ReadCsvTest(const std::string& directory,
                                    const std::vector<std::string>& label_columns,
                                    ModelSpec::Loss loss, const ReadProgress& progress) {
  const std::string path = directory + "/test.csv";
  absl::StatusOr<Table> test = TableReader(path, label_columns, loss, progress).Read();
  if (!test.ok()) return test.status();
  return std::move(test->data);
}

}  // namespace slipstream
