#ifndef SLIPSTREAM_WORKER_DATA_LOAD_DATA_H_
#define SLIPSTREAM_WORKER_DATA_LOAD_DATA_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/model/model_spec.h"
#include "common/settings/run_spec.h"
#include "worker/data/dataset.h"
#include "worker/data/file_bytes.h"

namespace slipstream {

/// Loads or generates the data set that `spec` names, with the answers that the model's loss needs:
/// labels or targets. The targets of a published set are 1 for the class and 0 for the others. Only
/// the generated set uses the model's input, whose shape its examples take, and `seed`, the run's.
/// REQUIRES: for the generated set, model.input is channels, height and width.
///
/// Fails with NOT_FOUND or DATA_LOSS; the message names the path and what is wrong with the file:
/// missing, truncated, of another format, different counts of examples and labels, values that are
/// no labels, or empty. If a file is missing, the message also names the directory that `data.path`
/// means and how to choose another. Fails with CANCELLED if `progress` asked to stop, and with
/// RESOURCE_EXHAUSTED if memory is short; that message says how many bytes are needed and free.
absl::StatusOr<DataSplits> LoadData(const DataSpec& spec, const ModelSpec& model, uint64_t seed,
                                    const ReadProgress& progress = {});

/// Does the same for the test set only. Reads no other files.
absl::StatusOr<Dataset> LoadTestData(const DataSpec& spec, const ModelSpec& model, uint64_t seed,
                                     const ReadProgress& progress = {});

/// Returns the source of the data for people: the directory as an absolute path, or "synthetic
/// data".
std::string DataSource(const DataSpec& spec);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_LOAD_DATA_H_
