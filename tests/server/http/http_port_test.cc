#include "server/http/http_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/credentials.h"
#include "tests/support/raw_connection.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::unique_ptr<HttpPort> Open(HttpPort::Options options, HttpPort::Answerer answer) {
  options.host = "localhost";
  auto port = HttpPort::Listen(std::move(options));
  EXPECT_TRUE(port.ok()) << port.status();
  EXPECT_TRUE((*port)->Start(std::move(answer)).ok());
  return *std::move(port);
}

/// Answers with the path that was asked for.
HttpPort::Answer Echo(const HttpPort::Request& request) { return {.text = request.path + "\n"}; }

/// Connects, and has reads fail after a minute without a byte.
FileDescriptor PatientlyConnectTo(uint16_t port) {
  FileDescriptor connection = ConnectTo(port);
  const timeval patience = {.tv_sec = 60, .tv_usec = 0};
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  return connection;
}

/// Sends `text` and returns what comes until the port closes the connection, which it has to.
std::string Say(const FileDescriptor& connection, std::string_view text) {
  std::string answer;
  send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL);
  char bytes[4096];
  ssize_t came = 0;
  while ((came = recv(connection.get(), bytes, sizeof(bytes), 0)) > 0) {
    answer.append(bytes, static_cast<size_t>(came));
  }
  EXPECT_TRUE(came == 0 || errno == ECONNRESET) << "the connection is still open";
  return answer;
}

TEST(HttpPortTest, AnswersRequestsOverOneConnection) {
  const auto port = Open({}, Echo);
  httplib::Client client("localhost", port->port());
  client.set_keep_alive(true);
  for (const char* path : {"/metrics", "/livez"}) {
    const httplib::Result answer = client.Get(path);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, std::string(path) + "\n");
    EXPECT_EQ(answer->get_header_value("Cache-Control"), "no-store");
  }
  EXPECT_EQ(client.Head("/metrics")->body, "");
}

TEST(HttpPortTest, RefusesWhatItIsNotFor) {
  const auto port = Open({}, Echo);
  httplib::Client client("localhost", port->port());
  EXPECT_EQ(client.Post("/metrics")->status, 405);
  EXPECT_EQ(client.Delete("/metrics")->status, 405);
  EXPECT_EQ(client.Get("/metrics", {{"Range", "bytes=0-1,0-1,0-1"}})->body, "/metrics\n");
  EXPECT_FALSE(client.Get("/metrics", {{"Accept-Encoding", "br"}})->has_header("Content-Encoding"));
  EXPECT_THAT(Say(PatientlyConnectTo(port->port()),
                  "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n123456789"),
              StartsWith("HTTP/1.1 405"));
}

TEST(HttpPortTest, EndsARequestThatHasTooManyBytes) {
  const auto port = Open({}, Echo);
  for (const std::string& text : {"GET /" + std::string(9000, 'x'), std::string(9000, '\n'),
                                  "GET / HTTP/1.1\r\n" + std::string(9000, 'x')}) {
    EXPECT_THAT(Say(PatientlyConnectTo(port->port()), text), testing::Not(HasSubstr("200 OK")));
  }
  // As much as a request may have, of what the library matches by recursion.
  const std::string digits = "GET / HTTP/1.1\r\nConnection: close\r\nRange: bytes=";
  EXPECT_THAT(Say(PatientlyConnectTo(port->port()), digits + std::string(8000, '1') + "-\r\n\r\n"),
              HasSubstr("HTTP/1.1 "));
  EXPECT_EQ(httplib::Client("localhost", port->port()).Get("/livez")->status, 200);
}

TEST(HttpPortTest, EndsARequestThatDoesNotEnd) {
  const auto port = Open({.request_time = std::chrono::milliseconds(20)}, Echo);
  EXPECT_THAT(Say(PatientlyConnectTo(port->port()), ""), IsEmpty());
  EXPECT_THAT(Say(PatientlyConnectTo(port->port()), "GET / HTTP/1.1\r\nX: "),
              testing::Not(HasSubstr("200")));
}

TEST(HttpPortTest, EndsAnAnswerThatIsNotTaken) {
  const auto port = Open({.request_time = std::chrono::milliseconds(20)}, [](const auto&) {
    return HttpPort::Answer{.text = std::string(64 << 20, 'x')};
  });
  const FileDescriptor connection = PatientlyConnectTo(port->port());
  const std::string_view request = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
  ASSERT_GT(send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL), 0);
  pollfd broken = {.fd = connection.get(), .events = POLLRDHUP, .revents = 0};
  EXPECT_GT(poll(&broken, 1, 60'000), 0);
  EXPECT_LT(Say(connection, "").size(), size_t{64} << 20);
}

TEST(HttpPortTest, TheIdlestConnectionMakesRoomForANewOne) {
  const auto port = Open({.connections_max = 2}, Echo);
  std::vector<std::unique_ptr<httplib::Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<httplib::Client>("localhost", port->port()));
    clients.back()->set_keep_alive(true);
    // A client connects anew if its connection was closed; so may the others.
    for (const auto& client : clients) ASSERT_TRUE(client->Get("/livez"));
  }
}

TEST(HttpPortTest, SilentPeersDoNotKeepOthersOut) {
  const auto port = Open({.connections_max = 2}, Echo);
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 8; ++i) silent.push_back(PatientlyConnectTo(port->port()));
  // While they come faster than the port can close them, one more may be turned away.
  httplib::Result answer = httplib::Client("localhost", port->port()).Get("/livez");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!answer && std::chrono::steady_clock::now() < deadline) {
    answer = httplib::Client("localhost", port->port()).Get("/livez");
  }
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
}

TEST(HttpPortTest, EndsAConnectionThatAsksTooOften) {
  const auto port = Open({.requests_at_once = 3, .requests_per_second = 0}, Echo);
  std::string requests;
  for (int i = 0; i < 5; ++i) requests += "GET /livez HTTP/1.1\r\n\r\n";
  const std::string answers = Say(PatientlyConnectTo(port->port()), requests);
  size_t count = 0;
  for (size_t at = answers.find("200 OK"); at != answers.npos;
       at = answers.find("200 OK", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 3u);
}

TEST(HttpPortTest, EndsWithConnectionsThatAreOpen) {
  auto port = Open({}, Echo);
  const FileDescriptor silent = PatientlyConnectTo(port->port());
  httplib::Client client("localhost", port->port());
  client.set_keep_alive(true);
  ASSERT_TRUE(client.Get("/livez"));
  port.reset();
  EXPECT_FALSE(client.Get("/livez"));
}

constexpr std::string_view kAsk = "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Asks for the stream and returns the connection once the first event has begun to come.
FileDescriptor OpenStream(const HttpPort& port) {
  FileDescriptor connection = PatientlyConnectTo(port.port());
  EXPECT_GT(send(connection.get(), kAsk.data(), kAsk.size(), MSG_NOSIGNAL), 0);
  char byte = 0;
  EXPECT_EQ(recv(connection.get(), &byte, 1, MSG_PEEK), 1);
  return connection;
}

/// Reads until `text` has come, or the connection is closed. Returns the end of what came.
std::string ReadUntil(const FileDescriptor& connection, std::string_view text) {
  std::string end;
  std::vector<char> bytes(1 << 20);
  while (end.find(text) == std::string::npos) {
    const ssize_t came = recv(connection.get(), bytes.data(), bytes.size(), 0);
    if (came <= 0) break;
    if (end.size() > 4096) end.erase(0, end.size() - 4096);
    end.append(bytes.data(), static_cast<size_t>(came));
  }
  return end;
}

/// Returns once the port lets another stream begin: it then has seen that one is over.
void AwaitPlace(const HttpPort& port) {
  std::string answer;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!answer.starts_with("HTTP/1.1 200")) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << answer;
    const FileDescriptor connection = PatientlyConnectTo(port.port());
    send(connection.get(), kAsk.data(), kAsk.size(), MSG_NOSIGNAL);
    answer = ReadUntil(connection, "\r\n\r\n");
  }
}

/// Answers with a stream of numbers at /stream, and else as Echo does.
class HttpPortStreamTest : public testing::Test {
 protected:
  std::unique_ptr<HttpPort> OpenPort(HttpPort::Options options) {
    options.event_interval = std::chrono::milliseconds(1);
    return Open(options, [this](const HttpPort::Request& request) {
      if (request.path != "/stream") return Echo(request);
      return HttpPort::Answer{
          .event = [this] { return "data: " + std::to_string(number_++) + padding_ + "\n\n"; }};
    });
  }

  std::atomic<int> number_ = 1;
  std::string padding_;
};

TEST_F(HttpPortStreamTest, SendsEvents) {
  const auto port = OpenPort({});
  const FileDescriptor stream = OpenStream(*port);
  const std::string came = ReadUntil(stream, "data: 3\n\n");
  EXPECT_THAT(came, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"));
  EXPECT_THAT(came, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_THAT(came, HasSubstr("\r\n\r\ndata: 1\n\ndata: 2\n\n"));
}

TEST_F(HttpPortStreamTest, HasSoManyStreamsAndNoMore) {
  const auto port = OpenPort({.streams_max = 1});
  httplib::Client client("localhost", port->port());
  {
    const FileDescriptor stream = OpenStream(*port);
    EXPECT_EQ(client.Get("/stream")->status, 503);
    EXPECT_EQ(client.Get("/livez")->status, 200);
  }
  AwaitPlace(*port);
}

TEST_F(HttpPortStreamTest, AStreamIsBusyAndStays) {
  const auto port = OpenPort({.connections_max = 1});
  const FileDescriptor stream = OpenStream(*port);
  EXPECT_THAT(Say(PatientlyConnectTo(port->port()), kAsk), IsEmpty());
  const std::string next = "data: " + std::to_string(number_ + 1) + "\n";
  EXPECT_THAT(ReadUntil(stream, next), HasSubstr(next));
}

TEST_F(HttpPortStreamTest, ASlowReaderGetsFewerEventsAndNoneThatIsOld) {
  padding_ = std::string(64 << 20, ' ');
  const auto port = OpenPort({.request_time = std::chrono::minutes(1)});
  const FileDescriptor stream = OpenStream(*port);
  number_ = 1000;  // The first event cannot be taken before it is read.
  EXPECT_THAT(ReadUntil(stream, "\n\ndata: 1000 "), HasSubstr("\n\ndata: 1000 "));
}

TEST_F(HttpPortStreamTest, EndsAStreamThatIsNotTaken) {
  padding_ = std::string(64 << 20, ' ');
  const auto port = OpenPort({.streams_max = 1, .request_time = std::chrono::milliseconds(100)});
  const FileDescriptor stream = OpenStream(*port);
  AwaitPlace(*port);
}

TEST_F(HttpPortStreamTest, EndsWhenThePeerSendsMore) {
  const auto port = OpenPort({});
  const FileDescriptor stream = OpenStream(*port);
  Say(stream, kAsk);
}

TEST_F(HttpPortStreamTest, EndsWithThePort) {
  auto port = OpenPort({});
  const FileDescriptor stream = OpenStream(*port);
  port.reset();
  Say(stream, "");
}

class HttpPortTlsTest : public testing::Test {
 protected:
  HttpPortTlsTest()
      : port_(Open({.credentials = authority_.FilesOf("slipstream://run/mnist/server/0")},
                   [](const HttpPort::Request& request) {
                     std::string text;
                     for (const std::string& uri : request.uris) text += uri;
                     return HttpPort::Answer{.text = text + request.authorization};
                   })) {}

  std::string Ask(const CredentialFiles& files, const httplib::Headers& headers = {}) const {
    httplib::SSLClient client("localhost", port_->port(), files.certificate, files.key);
    client.set_ca_cert_path(authority_.Path("ca.crt").c_str());
    const httplib::Result answer = client.Get("/", headers);
    return answer ? answer->body : "no answer";
  }

  const TestAuthority authority_;
  const std::unique_ptr<HttpPort> port_;
};

TEST_F(HttpPortTlsTest, TellsWhoAsks) {
  EXPECT_EQ(Ask(authority_.FilesOf("slipstream://run/mnist/operator")),
            "slipstream://run/mnist/operator");
  EXPECT_EQ(Ask({}), "");
  EXPECT_EQ(Ask({}, {{"Authorization", "Bearer x"}}), "Bearer x");
}

TEST_F(HttpPortTlsTest, HasNoHandshakeWithACertificateOfAnotherAuthority) {
  const TestAuthority other("other");
  EXPECT_EQ(Ask(other.FilesOf("slipstream://run/mnist/operator")), "no answer");
}

TEST_F(HttpPortTlsTest, AnswersNobodyWithoutEncryption) {
  EXPECT_THAT(Say(PatientlyConnectTo(port_->port()), "GET / HTTP/1.1\r\n\r\n"),
              testing::Not(HasSubstr("HTTP")));
}

}  // namespace
}  // namespace slipstream
