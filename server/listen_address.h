#ifndef SLIPSTREAM_SERVER_LISTEN_ADDRESS_H_
#define SLIPSTREAM_SERVER_LISTEN_ADDRESS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace slipstream {

/// The address on which a server listens, and the address at which others reach it.
struct ListenAddress {
  std::string host;

  /// The port; 0 if the system is to choose one.
  uint16_t port = 0;

  /// The host for others: the one it listens on, or the configured one if it listens on all of
  /// them.
  std::string public_host;

  std::string ToString() const;

  /// Returns the address for others, once the port is known.
  std::string PublicAddress(int actual_port) const;
};

/// Parses host:port. `configured` is this server's address in the settings. Unless SecuritySpec
/// says that it `may_leave_machine`, only loopback addresses are accepted.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text, std::string_view configured,
                                                 bool may_leave_machine);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_ADDRESS_H_
