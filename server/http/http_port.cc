#include "server/http/http_port.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "absl/time/time.h"
#include "common/base/allowance.h"
#include "common/files/accept_connection.h"
#include "common/log/log.h"
#include "common/process/steady_time.h"
#include "server/http/http_stream.h"
#include "server/listen/tcp_socket.h"

namespace slipstream {
namespace {

using Clock = std::chrono::steady_clock;

// The library matches some headers with std::regex, which takes some 640 bytes of stack for each
// character. A limit of the user's (ulimit -s) may leave threads less than that.
constexpr size_t kStackBytes = size_t{8} << 20;
static_assert(kStackBytes > 800 * HttpStream::kRequestBytesMax);

HttpPort::Request FromLibrary(const httplib::Request& request, std::vector<std::string> uris) {
  return {.path = request.path,
          .is_verbose = request.has_param("verbose"),
          .host = request.get_header_value("Host"),
          .uris = std::move(uris),
          .authorization = request.get_header_value("Authorization")};
}

/// The headers of every answer: nothing is kept by others, and no page of elsewhere may show or
/// read what is here.
const httplib::Headers& CommonHeaders() {
  static const auto& headers = *new httplib::Headers{{"Cache-Control", "no-store"},
                                                     {"X-Content-Type-Options", "nosniff"},
                                                     {"X-Frame-Options", "DENY"},
                                                     {"Referrer-Policy", "no-referrer"}};
  return headers;
}

/// Returns the head of a stream, which ends with its connection.
std::string HeadOfStream(const HttpPort::Answer& answer) {
  std::string head;
  for (const auto& [name, value] : CommonHeaders()) head += fmt::format("{}: {}\r\n", name, value);
  return fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n{}"
      "Content-Security-Policy: {}\r\n\r\n",
      head, answer.policy);
}

}  // namespace

/// The library's server without its sockets and threads. It is given a stream, and reads and
/// answers one request.
class HttpPort::Parser final : public httplib::Server {
 public:
  /// The most requests over one connection.
  static constexpr size_t kRequestsMax = 10'000;

  Parser(Answerer answer, const HttpPort::Options& options)
      : answer_(std::move(answer)), options_(options) {
    const auto idle_time = std::chrono::duration_cast<std::chrono::seconds>(options_.idle_time);
    set_keep_alive_timeout(idle_time.count());  // Is told to peers.
    set_keep_alive_max_count(kRequestsMax);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      Route(request, response);
      return HandlerResponse::Handled;
    });
    set_default_headers(CommonHeaders());
  }

  /// Returns whether the connection may be used again.
  bool AnswerOne(HttpStream& stream, std::chrono::milliseconds time, bool is_last) {
    stream.BeginRequest(Clock::now() + time);
    bool is_closed = is_last;
    bool is_whole = false;
    const auto on_head = [&](httplib::Request& request) {
      stream_of_thread = &stream;
      // Many small ranges would multiply an answer, and the library compresses with all its might.
      request.ranges.clear();
      request.headers.erase("Accept-Encoding");
      // A body would be taken for the next request, and none is wanted.
      is_whole = !request.has_header("Content-Length") && !request.has_header("Transfer-Encoding");
      stream.BeginAnswer(Clock::now() + time);
    };
    // Bytes that follow a head which was not understood cannot be understood, either.
    return process_request(stream, is_last, is_closed, on_head) && !is_closed && is_whole &&
           !stream.is_over();
  }

 private:
  // The library hands its request on, but not the stream that it came from.
  static thread_local HttpStream* stream_of_thread;

  void Route(const httplib::Request& request, httplib::Response& response) {
    if (request.method != "GET" && request.method != "HEAD") {
      response.status = 405;
      response.set_header("Allow", "GET, HEAD");
      return response.set_content("only GET and HEAD are answered here\n", "text/plain");
    }
    const Answer answer = answer_(FromLibrary(request, stream_of_thread->tls().PeerUris()));
    if (answer.event != nullptr && request.method == "GET") {
      if (streams_.fetch_add(1) < options_.streams_max) {
        Stream(answer, *stream_of_thread);
        stream_of_thread->End();
        --streams_;
        return;
      }
      --streams_;
      response.status = 503;
      return response.set_content("too many pages are open\n", "text/plain");
    }
    response.status = answer.status;
    response.set_header("Content-Security-Policy", answer.policy);
    response.set_content(answer.text, answer.type);
  }

  // The library's own streams would need its sockets. Returns when the stream is to end.
  void Stream(const Answer& answer, HttpStream& stream) const {
    std::string text = HeadOfStream(answer);
    Clock::time_point deadline = Clock::time_point::max();
    Clock::time_point due{};
    do {
      if (stream.IsTaken()) {
        text += answer.event();
        deadline = Clock::now() + options_.request_time;
        stream.BeginAnswer(deadline);
        if (stream.write(text.data(), text.size()) < 0) return;
        text.clear();
      } else if (Clock::now() > deadline) {
        return;
      }
      due = Clock::now();
      due += options_.event_interval - due.time_since_epoch() % options_.event_interval;
    } while (stream.AwaitSilence(due));
  }

  const Answerer answer_;
  const HttpPort::Options& options_;
  std::atomic<size_t> streams_ = 0;
};

thread_local HttpStream* HttpPort::Parser::stream_of_thread = nullptr;

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
    for (const Connection& each : connections_) shutdown(each.socket.get(), SHUT_RDWR);
  }
  // The loop is gone, so that nobody else changes the list; the threads take the lock at their end.
  for (const Connection& each : connections_) pthread_join(each.thread, nullptr);
}

absl::Status HttpPort::Start(Answerer answer) {
  parser_ = std::make_unique<Parser>(std::move(answer), options_);
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
      pthread_join(place->thread, nullptr);  // It does nothing more.
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
    // The newcomer has its place already, before that thread has seen that it is to end.
    shutdown(idlest->socket.get(), SHUT_RDWR);
    if (connections_.size() >= 2 * options_.connections_max) return;
  }
  Connection& place = connections_.emplace_back();
  place.port = this;
  place.socket = std::move(connection);
  place.idle_since = Clock::now();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  const int failure = pthread_create(&place.thread, &attributes, &HttpPort::Run, &place);
  pthread_attr_destroy(&attributes);
  if (failure != 0) connections_.pop_back();
}

void* HttpPort::Run(void* connection) {
  Connection& place = *static_cast<Connection*>(connection);
  place.port->Serve(place);
  MutexLock lock(place.port->mutex_);
  // Once it is over, nobody shuts it down any more.
  place.socket = FileDescriptor();
  place.is_over = true;
  return nullptr;
}

void HttpPort::Serve(Connection& place) {
  const FileDescriptor& connection = place.socket;
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
  Allowance requests(options_.requests_at_once, options_.requests_per_second);
  for (size_t request = 1; request <= Parser::kRequestsMax; ++request) {
    const Clock::time_point now = Clock::now();
    const bool is_first = request == 1;
    if (!is_first) is_idle_since(now);
    if (!stream.AwaitRequest(now + (is_first ? options_.request_time : options_.idle_time))) return;
    if (!requests.Take(SteadyNow()).has_value()) return;
    is_idle_since(Clock::time_point::max());
    if (!parser_->AnswerOne(stream, options_.request_time, request == Parser::kRequestsMax)) return;
  }
}

}  // namespace slipstream
