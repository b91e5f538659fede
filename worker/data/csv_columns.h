#ifndef SLIPSTREAM_WORKER_DATA_CSV_COLUMNS_H_
#define SLIPSTREAM_WORKER_DATA_CSV_COLUMNS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace slipstream {

/// The meaning of a table's columns.
struct CsvColumns {
  /// The names in the header; empty if there is no header.
  std::vector<std::string> names;
  size_t count = 0;

  /// Indices of the columns, in the order in which they are asked for.
  std::vector<size_t> labels;
  std::vector<size_t> features;

  /// Returns a column's description for messages: "column 3 (width)", counted from 1.
  std::string Describe(size_t column) const;
};

/// Finds the columns by a table's first line, which is a header if none of its fields is a number.
/// Fails with DATA_LOSS; its text is to follow the path in a message.
absl::StatusOr<CsvColumns> FindCsvColumns(const std::vector<std::string_view>& first_line,
                                          const std::vector<std::string>& label_columns);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_CSV_COLUMNS_H_
