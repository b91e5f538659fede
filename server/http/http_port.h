#ifndef SLIPSTREAM_SERVER_HTTP_HTTP_PORT_H_
#define SLIPSTREAM_SERVER_HTTP_HTTP_PORT_H_

#include <httplib.h>
#include <pthread.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/files/file_descriptor.h"
#include "common/security/credential_files.h"
#include "server/listen/accept_loop.h"

namespace slipstream {

/// A port over which a process answers requests for what is known anyway: with the library's
/// parser of HTTP, and connections and deadlines of our own (http_stream.h).
///
/// Each connection has a thread, and there are at most Options::connections_max: if one more comes,
/// the one goes that has not asked for anything for longest, and if all are being answered, the
/// newcomer. A request has to be there, and an answer read, within Options::request_time; a
/// connection may ask `requests_at_once` times, and `requests_per_second` after that. Requests have
/// no body.
///
/// An answer may go on as a stream of events, at most Options::streams_max at a time. An event is
/// made when the one before has been taken, so that a slow peer gets fewer of them and none that is
/// old; it has to be taken within Options::request_time. A stream ends with the port, and when the
/// peer closes the connection or sends more.
///
/// Thread-safe, as answers are given by several threads at a time.
class HttpPort {
 public:
  struct Options {
    std::string host;
    uint16_t port = 0;  // 0 if the system is to choose one.

    /// Without an authority nothing is encrypted.
    CredentialFiles credentials;
    size_t connections_max = 32;
    size_t streams_max = 16;

    /// How long a handshake, a request, and taking an answer may last.
    std::chrono::milliseconds request_time{5000};

    double requests_at_once = 100;
    double requests_per_second = 20;

    /// How long a connection may be without a request.
    std::chrono::milliseconds idle_time{60'000};

    /// Streams send their events at the multiples of this of the steady clock: all at once, so that
    /// what they send has to be made once.
    std::chrono::milliseconds event_interval{1000};
  };

  /// A request, as far as answers depend on it.
  struct Request {
    std::string path;
    bool is_verbose = false;  // "?verbose".
    std::string host;         // As the peer names this machine, mostly with the port.

    /// The URIs of the certificate that the peer has shown, and its "Authorization" header.
    std::vector<std::string> uris;
    std::string authorization;
  };
  struct Answer {
    int status = 200;
    std::string type = "text/plain; charset=utf-8";
    std::string text;

    /// What a browser may do with the answer: nothing.
    std::string policy = "default-src 'none'; frame-ancestors 'none'";

    /// Set if the answer is a stream: returns the next event, as text/event-stream has it.
    std::function<std::string()> event = nullptr;
  };
  using Answerer = std::function<Answer(const Request&)>;

  /// Takes a port, at which connections wait until Start. Fails as ListenOnTcp does.
  static absl::StatusOr<std::unique_ptr<HttpPort>> Listen(Options options);

  /// Ends all connections.
  ~HttpPort();
  HttpPort(const HttpPort&) = delete;
  HttpPort& operator=(const HttpPort&) = delete;

  uint16_t port() const { return port_; }
  bool is_encrypted() const { return options_.credentials.is_encrypted(); }

  /// Begins to answer. `answer` is called by several threads at a time.
  absl::Status Start(Answerer answer);

 private:
  class Parser;

  /// A connection and its thread.
  struct Connection {
    HttpPort* port = nullptr;
    FileDescriptor socket;
    pthread_t thread{};

    // Guarded by the port's mutex. While a request is answered, `idle_since` is the latest time.
    std::chrono::steady_clock::time_point idle_since;
    bool is_over = false;
  };

  HttpPort(Options options, std::vector<FileDescriptor> listening, uint16_t port);
  void Take(FileDescriptor connection);
  static void* Run(void* connection);
  void Serve(Connection& place);
  void RemoveOver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const Options options_;
  const uint16_t port_;

  std::vector<FileDescriptor> listening_;  // Empty from Start on.
  std::unique_ptr<Parser> parser_;         // Set by Start.

  Mutex mutex_;
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<AcceptLoop> loop_;  // Last: it uses everything above.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_HTTP_HTTP_PORT_H_
