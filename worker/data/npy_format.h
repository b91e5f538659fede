#ifndef SLIPSTREAM_WORKER_DATA_NPY_FORMAT_H_
#define SLIPSTREAM_WORKER_DATA_NPY_FORMAT_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/model/model_spec.h"
#include "worker/data/dataset.h"
#include "worker/data/file_bytes.h"

namespace slipstream {

/// Reads X_train.npy, y_train.npy, X_test.npy and y_test.npy from `directory`. X is [N, features],
/// [N, height, width] or [N, channels, height, width]; its values are not normalised. y is [N] or
/// [N, k]: for cross-entropy, classes from 0 (k is 1); for mse, the targets.
///
/// Fails with NOT_FOUND, DATA_LOSS or CANCELLED. The message starts with the path and says what was
/// found, where, and what was expected.
absl::StatusOr<DataSplits> ReadNpy(const std::string& directory, ModelSpec::Loss loss,
                                   const ReadProgress& progress);

/// Reads only X_test.npy and y_test.npy. For cross-entropy, `outputs` covers only the classes in
/// y_test.npy.
absl::StatusOr<Dataset> ReadNpyTest(const std::string& directory, ModelSpec::Loss loss,
                                    const ReadProgress& progress);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_NPY_FORMAT_H_
