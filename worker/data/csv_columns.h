#ifndef SLIPSTREAM_WORKER_DATA_CSV_COLUMNS_H_
#define SLIPSTREAM_WORKER_DATA_CSV_COLUMNS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/settings/run_spec.h"
#include "worker/data/csv_lines.h"

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

/// Finds the columns by a table's first line. Unless spec.header says whether it is a header, it is
/// one if spec.label_columns names columns, or if it has text and no numbers. Fails with DATA_LOSS,
/// also if the line may be either; its text is to follow the path in a message.
absl::StatusOr<CsvColumns> FindCsvColumns(const std::vector<CsvField>& first_line,
                                          const DataSpec& spec);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_CSV_COLUMNS_H_
