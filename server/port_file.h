#ifndef SLIPSTREAM_SERVER_PORT_FILE_H_
#define SLIPSTREAM_SERVER_PORT_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace slipstream {

/// Makes `path` hold one line with `address`. Whoever finds the file finds it whole: it is written
/// under another name and then renamed. Fails with DATA_LOSS, naming the path and the cause.
absl::Status WritePortFile(const std::string& path, const std::string& address);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_PORT_FILE_H_
