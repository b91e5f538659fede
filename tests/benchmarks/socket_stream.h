#ifndef SLIPSTREAM_TESTS_BENCHMARKS_SOCKET_STREAM_H_
#define SLIPSTREAM_TESTS_BENCHMARKS_SOCKET_STREAM_H_

#include <cstddef>
#include <string>

#include "common/files/file_descriptor.h"

namespace slipstream::benchmarks {

/// A blocking stream socket, tuned for large transfers. An address is host:port of IPv4, or
/// unix:PATH. If it cannot be opened, the process prints a line that says so and exits.
///
/// Not thread-safe: one owner.
class SocketStream {
 public:
  explicit SocketStream(const std::string& address);

  /// Takes over an accepted connection.
  SocketStream(FileDescriptor socket, bool is_unix);

  /// Both return false at the end of the stream, or once it is broken.
  bool Write(const void* data, size_t bytes);
  bool Read(void* data, size_t bytes);

 private:
  FileDescriptor socket_;
};

/// Accepts streams at an address; port 0 lets the system choose.
class SocketListener {
 public:
  explicit SocketListener(const std::string& address);

  /// The address in the form that SocketStream takes.
  const std::string& address() const { return address_; }
  SocketStream Accept();

 private:
  FileDescriptor socket_;
  bool is_unix_;
  std::string address_;
};

}  // namespace slipstream::benchmarks

#endif  // SLIPSTREAM_TESTS_BENCHMARKS_SOCKET_STREAM_H_
