#ifndef SLIPSTREAM_WORKER_DATA_READ_PROGRESS_H_
#define SLIPSTREAM_WORKER_DATA_READ_PROGRESS_H_

#include <functional>
#include <string>

namespace slipstream {

/// Called now and then with the share, in [0, 1], of a file that has been read or of a set that has
/// been made. Returns false to stop; reading then fails with CANCELLED. May be empty.
using ReadProgress = std::function<bool(const std::string& path, double share)>;

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_READ_PROGRESS_H_
