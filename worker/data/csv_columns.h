#ifndef SLIPSTREAM_WORKER_DATA_CSV_COLUMNS_H_
#define SLIPSTREAM_WORKER_DATA_CSV_COLUMNS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace slipstream {

/// What the columns of a table mean.
struct CsvColumns {
  /// Of the header; empty if there is none.
  std::vector<std::string> names;
  size_t count = 0;

  /// In the order in which they are asked for.
  std::vector<size_t> labels;
  std::vector<size_t> features;

  /// "column 3 (width)", counted from 1.
  std::string Describe(size_t column) const;
};

/// Finds the columns by a table's first line, which is a header if none of its fields is a number.
/// Fails with DATA_LOSS, for a message behind the path.
absl::StatusOr<CsvColumns> FindCsvColumns(const std::vector<std::string_view>& first_line,
                                          const std::vector<std::string>& label_columns);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_CSV_COLUMNS_H_
