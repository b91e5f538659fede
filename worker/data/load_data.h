#ifndef SLIPSTREAM_WORKER_DATA_LOAD_DATA_H_
#define SLIPSTREAM_WORKER_DATA_LOAD_DATA_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/model/model_spec.h"
#include "common/run/run_spec.h"
#include "worker/data/dataset.h"
#include "worker/data/read_progress.h"

namespace slipstream {

/// Loads or generates what `spec` names, with what `loss` needs: labels, or targets, which of a
/// published set are 1 for the class and 0 for the others. `seed` is the run's (of the generated
/// set only).
///
/// Fails with NOT_FOUND or DATA_LOSS naming the path and what is wrong with the file: missing,
/// truncated, of another format, counts that differ between examples and labels, values that are no
/// labels, empty; with CANCELLED if `progress` said so; with RESOURCE_EXHAUSTED if memory is short,
/// naming the bytes that are needed and that are free.
absl::StatusOr<DataSplits> LoadData(const DataSpec& spec, ModelSpec::Loss loss, uint64_t seed,
                                    const ReadProgress& progress = {});

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_LOAD_DATA_H_
