#include "server/listen/tcp_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/files/accept_connection.h"
#include "common/files/file_descriptor.h"

namespace slipstream {
namespace {

FileDescriptor ConnectTo(uint16_t port) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool connected =
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
  return connected ? std::move(socket) : FileDescriptor();
}

/// Waits until one of the sockets has a connection, and accepts it.
absl::StatusOr<FileDescriptor> AcceptFromAny(const TcpSockets& sockets) {
  std::vector<pollfd> events;
  for (const FileDescriptor& listening : sockets.listening) {
    events.push_back({.fd = listening.get(), .events = POLLIN, .revents = 0});
  }
  EXPECT_GT(poll(events.data(), events.size(), 30'000), 0);
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].revents != 0) return AcceptConnection(sockets.listening[i]);
  }
  return absl::UnavailableError("nobody connects");
}

int OptionOf(const FileDescriptor& socket, int option) {
  int value = 0;
  socklen_t size = sizeof(value);
  EXPECT_EQ(getsockopt(socket.get(), IPPROTO_TCP, option, &value, &size), 0);
  return value;
}

/// Listens with a timeout that differs from the system's default.
absl::StatusOr<TcpSockets> Listen(const std::string& host, uint16_t port) {
  return ListenOnTcp(host, port, absl::Seconds(7));
}

TEST(TcpSocketTest, ListensOnAllAddressesOfANameWithOnePort) {
  for (const char* host : {"localhost", "127.0.0.1", "0.0.0.0", "[::]", "[::0]"}) {
    SCOPED_TRACE(host);
    const absl::StatusOr<TcpSockets> sockets = Listen(host, 0);
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    ASSERT_NE(sockets->port, 0);

    const FileDescriptor client = ConnectTo(sockets->port);
    ASSERT_TRUE(client.is_open());
    const absl::StatusOr<FileDescriptor> accepted = AcceptFromAny(*sockets);
    ASSERT_TRUE(accepted.ok()) << accepted.status();
    EXPECT_EQ(OptionOf(*accepted, TCP_NODELAY), 1);
    EXPECT_EQ(OptionOf(*accepted, TCP_USER_TIMEOUT), 7000);
  }
}

TEST(TcpSocketTest, APortThatIsInUseIsNamedWithItsAddress) {
  const absl::StatusOr<TcpSockets> first = Listen("127.0.0.1", 0);
  ASSERT_TRUE(first.ok()) << first.status();

  for (const char* host : {"127.0.0.1", "0.0.0.0", "localhost"}) {
    const absl::Status second = Listen(host, first->port).status();
    EXPECT_EQ(second.code(), absl::StatusCode::kResourceExhausted) << host;
    EXPECT_NE(second.message().find(std::to_string(first->port) + ": Address already in use"),
              std::string::npos)
        << second;
  }
}

TEST(TcpSocketTest, AServerMayComeBackToItsPortAtOnce) {
  absl::StatusOr<TcpSockets> first = Listen("127.0.0.1", 0);
  ASSERT_TRUE(first.ok()) << first.status();
  const uint16_t port = first->port;
  {
    const FileDescriptor client = ConnectTo(port);
    // The side that closes first keeps the port in TIME_WAIT.
    const FileDescriptor accepted = AcceptFromAny(*first).value();
    shutdown(accepted.get(), SHUT_RDWR);
  }
  first->listening.clear();

  EXPECT_TRUE(Listen("127.0.0.1", port).ok());
}

TEST(TcpSocketTest, HostsThatCannotBeListenedOnAreNamed) {
  const absl::Status unknown = Listen("no-such-host.invalid", 0).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument) << unknown;
  EXPECT_NE(unknown.message().find("cannot listen on no-such-host.invalid: "), std::string::npos);

  // The address is reserved for documentation (RFC 5737): no machine has it.
  const absl::Status elsewhere = Listen("203.0.113.1", 7070).status();
  EXPECT_EQ(elsewhere.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(elsewhere.message(),
            "cannot listen on 203.0.113.1:7070: Cannot assign requested address");
}

}  // namespace
}  // namespace slipstream
