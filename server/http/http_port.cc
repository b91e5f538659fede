#include "server/http/http_port.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "common/files/accept_connection.h"
#include "common/log/log.h"
#include "server/http/http_stream.h"
#include "server/listen/tcp_socket.h"

namespace slipstream {
namespace {

using Clock = std::chrono::steady_clock;

HttpPort::Request FromLibrary(const httplib::Request& request, std::vector<std::string> uris) {
  return {.path = request.path,
          .is_verbose = request.has_param("verbose"),
          .host = request.get_header_value("Host"),
          .uris = std::move(uris),
          .authorization = request.get_header_value("Authorization")};
}

}  // namespace

/// The library's server without its sockets and threads. It is given a stream, and reads and
/// answers one request.
class HttpPort::Parser final : public httplib::Server {
 public:
  /// The most requests over one connection.
  static constexpr size_t kRequestsMax = 10'000;

  /// `idle_time` is told to peers.
  Parser(Answerer answer, std::chrono::milliseconds idle_time) : answer_(std::move(answer)) {
    set_keep_alive_timeout(std::chrono::duration_cast<std::chrono::seconds>(idle_time).count());
    set_keep_alive_max_count(kRequestsMax);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      Route(request, response);
      return HandlerResponse::Handled;
    });
    // Nothing is kept by others, and no page of elsewhere may show or read what is here.
    set_default_headers({{"Cache-Control", "no-store"},
                         {"X-Content-Type-Options", "nosniff"},
                         {"X-Frame-Options", "DENY"},
                         {"Content-Security-Policy", "default-src 'self' 'unsafe-inline' data:"}});
  }

  /// Returns whether the connection may be used again.
  bool AnswerOne(HttpStream& stream, std::chrono::milliseconds time, bool is_last) {
    stream.BeginRequest(Clock::now() + time);
    bool is_closed = is_last;
    bool is_whole = false;
    const auto on_head = [&](const httplib::Request& request) {
      stream_of_thread = &stream;
      // A body would be taken for the next request, and none is wanted.
      is_whole = !request.has_header("Content-Length") && !request.has_header("Transfer-Encoding");
      stream.BeginAnswer(Clock::now() + time);
    };
    // What follows a head that was not understood cannot be, either.
    return process_request(stream, is_last, is_closed, on_head) && !is_closed && is_whole;
  }

 private:
  // The library hands its request on, but not the stream that it came from.
  static thread_local const HttpStream* stream_of_thread;

  void Route(const httplib::Request& request, httplib::Response& response) const {
    if (request.method != "GET" && request.method != "HEAD") {
      response.status = 405;
      response.set_header("Allow", "GET, HEAD");
      return response.set_content("only GET and HEAD are answered here\n", "text/plain");
    }
    if (!request.ranges.empty()) {  // Many small ones could multiply an answer.
      response.status = 416;
      return response.set_content("ranges are not answered here\n", "text/plain");
    }
    const Answer answer = answer_(FromLibrary(request, stream_of_thread->tls().PeerUris()));
    response.status = answer.status;
    response.set_content(answer.text, answer.type);
  }

  const Answerer answer_;
};

thread_local const HttpStream* HttpPort::Parser::stream_of_thread = nullptr;

absl::StatusOr<std::unique_ptr<HttpPort>> HttpPort::Listen(Options options) {
  absl::StatusOr<TcpSockets> sockets =
      ListenOnTcp(options.host, options.port, absl::FromChrono(options.request_time));
  if (!sockets.ok()) return sockets.status();
  return std::unique_ptr<HttpPort>(
      new HttpPort(std::move(options), std::move(sockets->listening), sockets->port));
}

HttpPort::HttpPort(Options options, std::vector<FileDescriptor> listening, uint16_t port)
    : options_(std::move(options)), port_(port), listening_(std::move(listening)) {}

HttpPort::~HttpPort() {
  loop_.reset();
  {
    MutexLock lock(mutex_);
    for (const Connection& connection : connections_) shutdown(connection.socket, SHUT_RDWR);
  }
  // The loop is gone, so that nobody else changes the list; the threads take the lock at their end.
  for (Connection& connection : connections_) connection.thread.join();
}

absl::Status HttpPort::Start(Answerer answer) {
  parser_ = std::make_unique<Parser>(std::move(answer), options_.idle_time);
  absl::StatusOr<std::unique_ptr<AcceptLoop>> loop = AcceptLoop::Start(
      std::move(listening_), AcceptConnection,
      [this](FileDescriptor connection, const FileDescriptor&) { Take(std::move(connection)); });
  if (!loop.ok()) return loop.status();
  loop_ = *std::move(loop);
  return absl::OkStatus();
}

void HttpPort::RemoveOver() {
  for (auto place = connections_.begin(); place != connections_.end();) {
    const auto next = std::next(place);
    if (place->is_over) {
      place->thread.join();  // It does nothing more.
      connections_.erase(place);
    }
    place = next;
  }
}

void HttpPort::Take(FileDescriptor connection) {
  MutexLock lock(mutex_);
  RemoveOver();
  if (connections_.size() >= options_.connections_max) {
    const auto idlest = std::ranges::min_element(connections_, {}, &Connection::idle_since);
    if (idlest->idle_since == Clock::time_point::max()) return;
    idlest->idle_since = Clock::time_point::max();
    shutdown(idlest->socket, SHUT_RDWR);
    // The place becomes free as soon as its thread has seen that, and the newcomer has it already:
    // so there may be one thread more for each idle one that goes.
  }
  Connection& place = connections_.emplace_back();
  place.socket = connection.get();
  place.thread = std::thread([this, &place, mine = std::move(connection)] {
    Serve(mine, place);
    MutexLock ends(mutex_);
    place.socket = -1;
    place.is_over = true;
  });
}

void HttpPort::Serve(const FileDescriptor& connection, Connection& place) {
  absl::StatusOr<TlsSession> tls = TlsSession();
  if (is_encrypted()) {
    tls = TlsSession::Accept(options_.credentials, connection.get(),
                             Clock::now() + options_.request_time);
  }
  if (!tls.ok()) return LogDebug("no HTTP connection", {{"reason", tls.status().message()}});
  HttpStream stream(connection, *std::move(tls));
  const auto is_idle_since = [&](Clock::time_point time) {
    MutexLock lock(mutex_);
    place.idle_since = time;
  };
  for (size_t request = 1; request <= Parser::kRequestsMax; ++request) {
    const Clock::time_point now = Clock::now();
    const bool is_first = request == 1;
    if (!is_first) is_idle_since(now);
    if (!stream.AwaitRequest(now + (is_first ? options_.request_time : options_.idle_time))) return;
    is_idle_since(Clock::time_point::max());
    if (!parser_->AnswerOne(stream, options_.request_time, request == Parser::kRequestsMax)) return;
  }
}

}  // namespace slipstream
