#ifndef SLIPSTREAM_SERVER_LISTEN_ADDRESS_H_
#define SLIPSTREAM_SERVER_LISTEN_ADDRESS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace slipstream {

/// Where a server listens, and how others reach it.
struct ListenAddress {
  std::string host;

  /// 0: the system chooses.
  uint16_t port = 0;

  /// For others: the host it listens on, or the configured one if it listens on all of them.
  std::string public_host;

  std::string ToString() const;

  /// Once the port is known.
  std::string PublicAddress(int actual_port) const;
};

/// Reads host:port. `configured` is this server's address in the settings. Unless it
/// `may_leave_machine`, as SecuritySpec says, only loopback addresses pass.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text, std::string_view configured,
                                                 bool may_leave_machine);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_ADDRESS_H_
