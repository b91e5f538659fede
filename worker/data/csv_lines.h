#ifndef SLIPSTREAM_WORKER_DATA_CSV_LINES_H_
#define SLIPSTREAM_WORKER_DATA_CSV_LINES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/file_bytes.h"

namespace slipstream {

/// Reads a text file line by line, in memory that does not grow with the file.
///
/// Not thread-safe: one owner.
class CsvLines {
 public:
  static constexpr size_t kLineBytesMax = size_t{1} << 26;

  /// Fails with NOT_FOUND or DATA_LOSS; the message starts with the path.
  static absl::StatusOr<CsvLines> Open(const std::string& path);

  /// Returns the next line without its line end (LF, CRLF or CR) and without a byte order mark;
  /// nothing at the end of the file. The line is valid until the next call. Fails with DATA_LOSS if
  /// a line has more than kLineBytesMax bytes or the file cannot be read.
  absl::StatusOr<std::optional<std::string_view>> Next();

  /// The number of the line returned last, from 1.
  uint64_t number() const { return number_; }

  /// The share of the file that was returned; 1 for an empty file.
  double share() const;

 private:
  CsvLines(std::string path, OpenFile file, uint64_t bytes)
      : path_(std::move(path)), file_(std::move(file)), bytes_(bytes) {}

  absl::Status Fill();
  std::string_view Take(size_t length, size_t with_end);

  std::string path_;
  OpenFile file_;
  uint64_t bytes_;
  uint64_t taken_ = 0;
  uint64_t number_ = 0;
  bool is_at_end_ = false;
  std::vector<char> buffer_;  // [begin_, end_) is read but not returned yet.
  size_t begin_ = 0;
  size_t end_ = 0;
};

/// One field of a line, which it points into.
struct CsvField {
  /// Without the spaces around it, and without the double quotes around all of it.
  std::string_view text;
  bool is_quoted = false;

  /// The text as a name: a double quote, which a quoted field has twice, is there once.
  std::string Name() const;
};

/// Splits a line into its fields at the commas outside of double quotes. Returns false if a quoted
/// field does not end on the line.
[[nodiscard]] bool SplitCsvRow(std::string_view line, std::vector<CsvField>& fields);

/// Returns the decimal number that makes up the whole field, if it is one; NaN and infinities are
/// accepted. A number that fp64 cannot hold becomes zero or infinite.
std::optional<double> ParseCsvNumber(std::string_view field);

/// Returns the field for a message: in quotes, shortened, without control characters; "nothing" if
/// it is empty.
std::string DescribeCsvField(std::string_view field);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_CSV_LINES_H_
