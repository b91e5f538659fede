#ifndef SLIPSTREAM_DEPLOY_PSCTL_OUTPUT_FILE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_OUTPUT_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace slipstream {

/// Says why the file cannot be written; OK if it probably can. An existing file may be replaced
/// only if `force` is set (--force). Work that takes long calls this before it begins, so that the
/// mistakes that people make are found at once.
absl::Status CheckOutputFile(const std::string& path, bool force);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_OUTPUT_FILE_H_
