#ifndef SLIPSTREAM_WORKER_DATA_CSV_ROW_H_
#define SLIPSTREAM_WORKER_DATA_CSV_ROW_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream {

/// Splits a line into its fields at commas, and strips the spaces around each field and the double
/// quotes around a whole field. The fields point into `line`.
void SplitCsvRow(std::string_view line, std::vector<std::string_view>& fields);

/// Returns the decimal number that makes up the whole field, if it is one; NaN and infinities are
/// accepted.
std::optional<double> ParseCsvNumber(std::string_view field);

/// Returns the field for a message: in quotes, shortened, without control characters; "nothing" if
/// it is empty.
std::string DescribeCsvField(std::string_view field);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_CSV_ROW_H_
