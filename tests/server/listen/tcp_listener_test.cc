#include "server/listen/tcp_listener.h"

#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/files/file_descriptor.h"
#include "server/listen/accept_loop.h"
#include "tests/support/captured_log.h"
#include "tests/support/raw_connection.h"

namespace slipstream {
namespace {

constexpr std::chrono::seconds kPatience{30};

/// A server with nothing but gRPC's own health service. Tests limit the number of files of this
/// process.
class TcpListenerTest : public testing::Test {
 protected:
  TcpListenerTest() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    grpc::EnableDefaultHealthCheckService(true);
    listener_ = TcpListener::Listen("127.0.0.1", 0).value();
    grpc::ServerBuilder builder;
    listener_->GiveTo(builder, grpc::InsecureServerCredentials());
    server_ = builder.BuildAndStart();
    EXPECT_TRUE(listener_->Start(nullptr).ok());
  }

  ~TcpListenerTest() override {
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0);
    listener_.reset();
    server_->Shutdown();
  }

  void AllowFiles(rlim_t count) const {
    const rlimit limit = {.rlim_cur = count, .rlim_max = before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }

  /// Returns the lowest free file descriptor.
  static int NextFile() { return FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)).get(); }

  FileDescriptor Connect() const { return ConnectTo(listener_->port()); }

  bool IsReached() const {
    const auto channel = grpc::CreateChannel("127.0.0.1:" + std::to_string(listener_->port()),
                                             grpc::InsecureChannelCredentials());
    return channel->WaitForConnected(std::chrono::system_clock::now() + kPatience);
  }

  CapturedLog log_;
  rlimit before_ = {};
  std::unique_ptr<TcpListener> listener_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(TcpListenerTest, ConnectionsReachTheServer) {
  EXPECT_TRUE(IsReached());
  EXPECT_TRUE(IsReached());
}

TEST_F(TcpListenerTest, AcceptsAgainOnceThereAreFilesAgain) {
  AllowFiles(static_cast<rlim_t>(NextFile()) + 2);
  std::vector<FileDescriptor> others;
  const auto use_all = [&others] {
    do {
      others.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
    } while (others.back().is_open());
    others.pop_back();
  };
  // gRPC's threads may close a file meanwhile, in whose place a connection is accepted.
  std::vector<FileDescriptor> clients;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (log_.Count("connections have to wait reason=\"accept: Too many open files\"") == 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    use_all();
    ASSERT_FALSE(others.empty());
    others.pop_back();
    clients.push_back(Connect());  // Uses the last free descriptor.
    ASSERT_TRUE(clients.back().is_open());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  AllowFiles(before_.rlim_cur);
  char byte = 0;
  EXPECT_EQ(recv(clients.back().get(), &byte, 1, MSG_WAITALL), 1) << "the one that waited";
  EXPECT_TRUE(IsReached());
}

TEST_F(TcpListenerTest, ConnectionsLeaveSomeFilesToOthers) {
  constexpr int kLeft = AcceptLoop::kFilesLeft;
  constexpr int kLimit = 4 * kLeft;
  AllowFiles(kLimit);
  // gRPC's threads may close a file meanwhile, whose low number a connection then gets.
  std::vector<FileDescriptor> others;
  std::vector<FileDescriptor> clients;
  char byte = 0;
  do {
    while (NextFile() < kLimit - kLeft) {
      others.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    ASSERT_LT(others.size(), size_t{kLimit}) << "no connection is turned away";
    clients.push_back(Connect());
    pollfd answered = {.fd = clients.back().get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&answered, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())),
              1);
  } while (recv(clients.back().get(), &byte, 1, 0) > 0);
  EXPECT_EQ(log_.Count("a connection is turned away reason=\"almost all files"), 1);

  others.clear();
  EXPECT_TRUE(IsReached());
}

}  // namespace
}  // namespace slipstream
