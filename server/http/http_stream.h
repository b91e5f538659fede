#ifndef SLIPSTREAM_SERVER_HTTP_HTTP_STREAM_H_
#define SLIPSTREAM_SERVER_HTTP_HTTP_STREAM_H_

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "common/files/file_descriptor.h"
#include "server/http/tls_session.h"

namespace slipstream {

/// The bytes of a connection over which requests come, encrypted or not. The library's own streams
/// wait anew for each byte, so that a peer that sends one byte now and then has a thread for ever;
/// this one has a deadline for a whole request, and for a whole answer, and a bound for what a
/// request may have.
///
/// Not thread-safe: one owner.
class HttpStream final : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;

  /// The most bytes of a request. A browser's has less than 1 KiB.
  static constexpr size_t kRequestBytesMax = 8192;

  /// `connection` does not block, and must outlive this object. `tls` is of that connection, or
  /// empty.
  HttpStream(const FileDescriptor& connection, TlsSession tls)
      : connection_(connection.get()), tls_(std::move(tls)) {}

  /// Waits until the next request begins, until `until` at most. Returns whether one does.
  bool AwaitRequest(Clock::time_point until);

  /// Sets until when the request has to be read, and its bound of bytes; or until when the answer
  /// has to be written.
  void BeginRequest(Clock::time_point until);
  void BeginAnswer(Clock::time_point until) { deadline_ = until; }

  const TlsSession& tls() const { return tls_; }

  // httplib::Stream:
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* bytes, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return connection_; }

 private:
  bool Fill();

  const int connection_;
  TlsSession tls_;
  Clock::time_point deadline_ = Clock::time_point::min();
  size_t bytes_left_ = 0;  // Of the request.

  // What was read and not taken yet: the library takes the lines of a request byte by byte.
  std::array<char, 4096> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_HTTP_HTTP_STREAM_H_
