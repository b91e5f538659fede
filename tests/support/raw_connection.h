#ifndef SLIPSTREAM_TESTS_SUPPORT_RAW_CONNECTION_H_
#define SLIPSTREAM_TESTS_SUPPORT_RAW_CONNECTION_H_

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "common/files/file_descriptor.h"

namespace slipstream {

/// Opens a connection to a port of 127.0.0.1 and sends nothing. The descriptor is invalid if this
/// process may open no more files.
inline FileDescriptor ConnectTo(uint16_t port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return socket;
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  return socket;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_RAW_CONNECTION_H_
