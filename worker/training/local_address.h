#ifndef SLIPSTREAM_WORKER_TRAINING_LOCAL_ADDRESS_H_
#define SLIPSTREAM_WORKER_TRAINING_LOCAL_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"

namespace slipstream {

/// Returns the IP address from which this machine reaches `server` (host:port): that of loopback
/// for a server at a loopback address. Sends nothing. UNAVAILABLE, with the server's name, if it
/// has no address or no way leads there.
absl::StatusOr<std::string> LocalAddressTowards(const std::string& server);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_LOCAL_ADDRESS_H_
