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

  /// Returns whether the peer's machine has taken all that was written.
  bool IsTaken() const;

  /// Waits until `until`. Returns false at once if the peer sends something or closes the
  /// connection, and if this process does.
  bool AwaitSilence(Clock::time_point until) const;

  /// Ends the connection: nothing more is written, and what the peer has not taken is forgotten.
  void End();
  bool is_over() const { return is_over_; }

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
  bool is_over_ = false;

  // What was read and not taken yet: the library takes the lines of a request byte by byte.
  std::array<char, 4096> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_HTTP_HTTP_STREAM_H_
