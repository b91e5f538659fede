#ifndef SLIPSTREAM_WORKER_DATA_READ_PROGRESS_H_
#define SLIPSTREAM_WORKER_DATA_READ_PROGRESS_H_

#include <functional>
#include <string>

namespace slipstream {

/// Told now and then how much of a file has been read, or of a set been made, as a share in [0, 1];
/// returns false to give up, upon which reading fails with CANCELLED. May be empty.
using ReadProgress = std::function<bool(const std::string& path, double share)>;

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_READ_PROGRESS_H_
