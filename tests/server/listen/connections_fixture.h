#ifndef SLIPSTREAM_TESTS_SERVER_LISTEN_CONNECTIONS_FIXTURE_H_
#define SLIPSTREAM_TESTS_SERVER_LISTEN_CONNECTIONS_FIXTURE_H_

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/files/file_descriptor.h"
#include "common/rpc/status_conversion.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/listen/caller.h"
#include "server/listen/connections.h"
#include "server/listen/tcp_listener.h"
#include "tests/support/captured_log.h"
#include "tests/support/raw_connection.h"

namespace slipstream {

inline constexpr std::chrono::seconds kPatience{30};

/// Believes every caller: a client that calls Leave is a member, and one that asks for the status
/// is a guest. A heartbeat tells nothing about its sender.
class CredulousService final : public v1::Coordinator::CallbackService {
 public:
  explicit CredulousService(Connections& connections) : connections_(connections) {}

  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const v1::LeaveRequest* request, v1::LeaveReply*) override {
    Caller(&connections_, context->c_call()).NoteMember(WorkerId{request->identity().worker()});
    return Done(context);
  }
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest*, v1::RunStatus*) override {
    Caller(&connections_, context->c_call()).IsGuest();
    return Done(context);
  }
  grpc::ServerBidiReactor<v1::HeartbeatRequest, v1::HeartbeatReply>* Heartbeat(
      grpc::CallbackServerContext* context) override {
    return new Silence(connections_, context->c_call());
  }

 private:
  class Silence final : public grpc::ServerBidiReactor<v1::HeartbeatRequest, v1::HeartbeatReply> {
   public:
    Silence(Connections& connections, grpc_call* call) : caller_(&connections, call) {
      const absl::Status admitted = caller_.Admit();
      if (!admitted.ok()) {
        Finish(ToGrpc(admitted));
        return;
      }
      StartSendInitialMetadata();
      StartRead(&request_);
    }

   private:
    void OnReadDone(bool) override { Finish(grpc::Status::OK); }
    void OnDone() override { delete this; }

    Caller caller_;
    v1::HeartbeatRequest request_;
  };

  static grpc::ServerUnaryReactor* Done(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  Connections& connections_;
};

/// A server that tends its connections by a clock of the test.
class ConnectionsTest : public testing::Test {
 protected:
  void Start(Connections::Options options, const std::string& host = "127.0.0.1") {
    options.now = [this] { return absl::UnixEpoch() + absl::Milliseconds(milliseconds_.load()); };
    connections_ = Connections::Make(options).value();
    service_ = std::make_unique<CredulousService>(*connections_);
    listener_ = TcpListener::Listen(host, 0).value();
    grpc::ServerBuilder builder;
    listener_->GiveTo(builder, grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_TRUE(listener_->Start(connections_.get()).ok());
    address_ = host + ":" + std::to_string(listener_->port());
  }

  void TearDown() override {
    if (server_ == nullptr) return;
    listener_.reset();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  FileDescriptor Connect() const { return ConnectTo(listener_->port()); }

  /// Waits until the server sends something or closes. Returns the number of bytes received, which
  /// is 0 if the server closed the connection.
  static ssize_t Receive(const FileDescriptor& socket) {
    pollfd readable = {.fd = socket.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&readable, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())),
              1);
    char bytes[1024];
    return recv(socket.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
  }
  static bool IsClosed(const FileDescriptor& socket) {
    ssize_t received = 1;
    while (received > 0) received = Receive(socket);
    return received == 0;
  }

  std::unique_ptr<v1::Coordinator::Stub> NewClient() const {
    grpc::ChannelArguments alone;
    alone.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::Coordinator::NewStub(
        grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), alone));
  }

  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    context.set_wait_for_ready(true);
  }
  static void ComeAsMember(v1::Coordinator::Stub& client, uint32_t worker) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::LeaveRequest request;
    request.mutable_identity()->set_worker(worker);
    v1::LeaveReply reply;
    EXPECT_TRUE(client.Leave(&context, request, &reply).ok());
  }
  static void ComeAsGuest(v1::Coordinator::Stub& client) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::RunStatus reply;
    EXPECT_TRUE(client.GetStatus(&context, {}, &reply).ok());
  }

  static void AskOnceTooOften(v1::Coordinator::Stub& client) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::RunStatus reply;
    (void)client.GetStatus(&context, {}, &reply);  // The answer may still arrive.
  }

  /// Heartbeats that say nothing.
  class SilentCalls {
   public:
    using Call = grpc::ClientReaderWriter<v1::HeartbeatRequest, v1::HeartbeatReply>;

    explicit SilentCalls(v1::Coordinator::Stub& client) : client_(client) {}

    Call& Open() {
      contexts_.push_back(std::make_unique<grpc::ClientContext>());
      SetDeadline(*contexts_.back());
      calls_.push_back(client_.Heartbeat(contexts_.back().get()));
      return *calls_.back();
    }
    Call& at(size_t call) { return *calls_.at(call); }

   private:
    v1::Coordinator::Stub& client_;
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts_;
    std::vector<std::unique_ptr<Call>> calls_;
  };

  void AwaitCounts(size_t strangers, size_t guests, size_t of_members) {
    const absl::Time deadline = absl::Now() + absl::FromChrono(kPatience);
    for (;;) {
      const Connections::Counts counts = connections_->counts();
      if (counts.strangers == strangers && counts.guests == guests &&
          counts.of_members == of_members) {
        return;
      }
      ASSERT_LT(absl::Now(), deadline) << counts.strangers << " strangers, " << counts.guests
                                       << " guests, " << counts.of_members << " of members";
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  /// Connects as the only stranger, and sends what nobody understands.
  FileDescriptor ConnectAndSend(size_t size) {
    FileDescriptor connection = Connect();
    AwaitCounts(1, 0, 0);
    const std::string bytes(size, 'x');
    // The server may close it before all has gone.
    EXPECT_GT(send(connection.get(), bytes.data(), size, MSG_NOSIGNAL),
              static_cast<ssize_t>(size / 2));
    return connection;
  }

  /// Connects as the only stranger, and expects that no place is left.
  FileDescriptor TakeTheLastPlace() {
    EXPECT_TRUE(connections_->HasPlace());
    FileDescriptor connection = Connect();
    AwaitCounts(1, 0, 0);
    EXPECT_FALSE(connections_->HasPlace());
    return connection;
  }

  CapturedLog log_;
  std::atomic<int64_t> milliseconds_ = 1'000'000;
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<CredulousService> service_;
  std::unique_ptr<TcpListener> listener_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_LISTEN_CONNECTIONS_FIXTURE_H_
