#ifndef SLIPSTREAM_WORKER_DATA_CIFAR10_FORMAT_H_
#define SLIPSTREAM_WORKER_DATA_CIFAR10_FORMAT_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "worker/data/file_bytes.h"
#include "worker/data/raw_examples.h"

namespace slipstream {

/// The number of records in each of the six published files.
inline constexpr size_t kCifar10Records = 10'000;

/// Reads CIFAR-10 in its published binary layout from `directory`: data_batch_1.bin to
/// data_batch_5.bin and test_batch.bin, each of `records_per_file` records of a label byte and
/// 32×32 red, green and blue bytes.
///
/// Fails with NOT_FOUND or DATA_LOSS; the message starts with the path and says what was found and
/// what was expected. Fails with CANCELLED or RESOURCE_EXHAUSTED like MapFile.
absl::StatusOr<RawSplits> ReadCifar10(const std::string& directory,
                                      size_t records_per_file = kCifar10Records,
                                      const ReadProgress& progress = {});

/// Reads only test_batch.bin.
absl::StatusOr<RawExamples> ReadCifar10Test(const std::string& directory,
                                            size_t records_per_file = kCifar10Records,
                                            const ReadProgress& progress = {});

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_CIFAR10_FORMAT_H_
