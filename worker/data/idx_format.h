#ifndef SLIPSTREAM_WORKER_DATA_IDX_FORMAT_H_
#define SLIPSTREAM_WORKER_DATA_IDX_FORMAT_H_

#include <string>

#include "absl/status/statusor.h"
#include "worker/data/file_bytes.h"
#include "worker/data/raw_examples.h"

namespace slipstream {

/// Reads a set in MNIST's IDX format (MNIST, Fashion-MNIST, KMNIST, …) from `directory`:
/// `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and
/// `t10k-labels-idx1-ubyte`, or else with `.gz`, or else with `.idx` for `-idx`. A gzip file is
/// unpacked whatever its name.
///
/// Fails with NOT_FOUND or DATA_LOSS; the message starts with the path and says what was found and
/// what was expected. Fails with CANCELLED or RESOURCE_EXHAUSTED like MapFile.
absl::StatusOr<RawSplits> ReadIdx(const std::string& directory, const ReadProgress& progress = {});

/// Reads only the two files of the test set.
absl::StatusOr<RawExamples> ReadIdxTest(const std::string& directory,
                                        const ReadProgress& progress = {});

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_IDX_FORMAT_H_
