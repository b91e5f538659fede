#ifndef SLIPSTREAM_WORKER_DATA_CSV_ROW_H_
#define SLIPSTREAM_WORKER_DATA_CSV_ROW_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream {

/// The fields of one line, separated by commas, without the spaces around them and the double
/// quotes around a whole field. They point into `line`.
void SplitCsvRow(std::string_view line, std::vector<std::string_view>& fields);

/// The number that the whole field is, in decimal; NaN and infinities are read, too.
std::optional<double> ParseCsvNumber(std::string_view field);

/// The field for a message: in quotes, shortened, without control characters; "nothing" if empty.
std::string DescribeCsvField(std::string_view field);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_CSV_ROW_H_
