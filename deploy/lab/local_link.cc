#include "deploy/lab/local_link.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/files/file_descriptor.h"
#include "deploy/lab/measured_times.h"

namespace slipstream {
namespace {

constexpr size_t kBulkBytes = size_t{16} << 20;
constexpr int kMessages = 64;

/// The two ends of a connection within this process.
struct Ends {
  FileDescriptor near;
  FileDescriptor far;
};

absl::Status NoSocket(const char* what) {
  return absl::ResourceExhaustedError(std::string(what) + ": " + strerror(errno));
}

absl::StatusOr<Ends> LocalEnds() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return NoSocket("socketpair");
  return Ends{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

absl::StatusOr<Ends> TcpEnds() {
  const FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  FileDescriptor near(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.get(), any, size) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), any, &size) != 0 || connect(near.get(), any, size) != 0) {
    return NoSocket("a connection to 127.0.0.1");
  }
  FileDescriptor far(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const int yes = 1;
  for (const FileDescriptor* end : {&near, &far}) {
    setsockopt(end->get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  return Ends{std::move(near), std::move(far)};
}

bool SendAll(const FileDescriptor& end, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(end.get(), data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool ReceiveAll(const FileDescriptor& end, char* data, size_t size) {
  while (size > 0) {
    const ssize_t got = recv(end.get(), data, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

/// Measures the messages of a connection, whose far end a thread of its own answers: 'p' at once,
/// 'b' after kBulkBytes more, any other not at all.
LocalLink MeasureConnection(const Ends& ends, absl::Duration budget) {
  std::thread far([&ends] {
    std::vector<char> bulk(kBulkBytes);
    char word = 0;
    while (ReceiveAll(ends.far, &word, 1)) {
      if (word == 'b' && !ReceiveAll(ends.far, bulk.data(), bulk.size())) return;
      if ((word == 'b' || word == 'p') && !SendAll(ends.far, &word, 1)) return;
    }
  });
  const std::vector<char> bulk(kBulkBytes, 'x');
  char answer = 0;
  const auto ping = [&] {
    SendAll(ends.near, "p", 1);
    ReceiveAll(ends.near, &answer, 1);
  };
  const auto send_bulk = [&] {
    SendAll(ends.near, "b", 1);
    SendAll(ends.near, bulk.data(), bulk.size());
    ReceiveAll(ends.near, &answer, 1);
  };
  const auto send_small = [&] {
    for (int i = 0; i < kMessages; ++i) SendAll(ends.near, "m", 1);
  };
  LocalLink link;
  link.latency = Median(TimesOf(ping, MeasuringClock::kSteady, budget / 3)) / 2;
  link.bytes_per_second =
      kBulkBytes / Median(TimesOf(send_bulk, MeasuringClock::kSteady, budget / 3));
  link.message = Median(TimesOf(send_small, MeasuringClock::kThread, budget / 3)) / kMessages;
  shutdown(ends.near.get(), SHUT_RDWR);
  far.join();
  return link;
}

}  // namespace

absl::StatusOr<LocalLink> MeasureSharedMemory(size_t bytes, absl::Duration budget) {
  const absl::StatusOr<Ends> ends = LocalEnds();
  if (!ends.ok()) return ends.status();
  LocalLink link = MeasureConnection(*ends, budget);
  const std::vector<char> from(std::max<size_t>(bytes, 4096), 'x');
  std::vector<char> to(from.size());
  const auto copy = [&] {
    std::memcpy(to.data(), from.data(), from.size());
    asm volatile("" : : "r"(to.data()) : "memory");  // So that the copy is made.
  };
  link.bytes_per_second =
      static_cast<double>(from.size()) / Median(TimesOf(copy, MeasuringClock::kThread, budget / 3));
  return link;
}

absl::StatusOr<LocalLink> MeasureLoopback(absl::Duration budget) {
  const absl::StatusOr<Ends> ends = TcpEnds();
  if (!ends.ok()) return ends.status();
  return MeasureConnection(*ends, budget);
}

}  // namespace slipstream
