#ifndef SLIPSTREAM_WORKER_DATA_CSV_FORMAT_H_
#define SLIPSTREAM_WORKER_DATA_CSV_FORMAT_H_

#include "absl/status/statusor.h"
#include "common/model/model_spec.h"
#include "common/settings/run_spec.h"
#include "worker/data/dataset.h"
#include "worker/data/file_bytes.h"

namespace slipstream {

/// Reads train.csv and test.csv from the directory spec.path: numbers separated by commas, one
/// example per line, with or without a line of names at the top, as spec.header says. The labels
/// are in the columns called spec.label_columns, or in the last column if none is given: for
/// cross-entropy one column of classes from 0, for mse the targets. The other columns are the
/// example, in their order.
///
/// Fails with NOT_FOUND, DATA_LOSS, CANCELLED or RESOURCE_EXHAUSTED. The message starts with the
/// path and says in which line and column what was found, and what was expected.
absl::StatusOr<DataSplits> ReadCsv(const DataSpec& spec, ModelSpec::Loss loss,
                                   const ReadProgress& progress);

/// Reads only test.csv. For cross-entropy, `outputs` covers only the classes in that file.
absl::StatusOr<Dataset> ReadCsvTest(const DataSpec& spec, ModelSpec::Loss loss,
                                    const ReadProgress& progress);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_CSV_FORMAT_H_
