#include "server/listen/connections.h"

#include <gmock/gmock.h>
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
#include "server/listen/tcp_listener.h"
#include "tests/support/captured_log.h"
#include "tests/support/raw_connection.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{30};

/// Believes every caller: a client that calls Leave is a member, and one that asks for the status
/// is a guest. A heartbeat tells nothing about its sender.
class CredulousService final : public v1::Coordinator::CallbackService {
 public:
  explicit CredulousService(Connections& connections) : connections_(connections) {}

  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const v1::LeaveRequest* request, v1::LeaveReply*) override {
    Caller(&connections_, context->c_call()).IsMember(WorkerId{request->identity().worker()});
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
    return recv(socket.get(), bytes, sizeof(bytes), 0);
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

  CapturedLog log_;
  std::atomic<int64_t> milliseconds_ = 1'000'000;
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<CredulousService> service_;
  std::unique_ptr<TcpListener> listener_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(ConnectionsTest, StrangersHaveLittleTime) {
  Start({.strangers_max = 2});
  const FileDescriptor stranger = Connect();
  AwaitCounts(1, 0, 0);

  milliseconds_ += 4'999;
  EXPECT_GT(Receive(stranger), 0) << "gRPC's first words; it is not closed yet";
  milliseconds_ += 1;

  EXPECT_TRUE(IsClosed(stranger));
  log_.WaitFor("closed connections count=1");
}

TEST_F(ConnectionsTest, StrangersHaveFewPlacesAndLessTimeWhileOthersWait) {
  Start({.strangers_max = 2});
  const FileDescriptor first = Connect();
  const FileDescriptor second = Connect();
  AwaitCounts(2, 0, 0);
  const FileDescriptor third = Connect();

  milliseconds_ += 2'000;

  EXPECT_TRUE(IsClosed(first));
  EXPECT_TRUE(IsClosed(second));
  EXPECT_GT(Receive(third), 0) << "its turn has come";
}

TEST_F(ConnectionsTest, OnlySoManyStrangersComeAtATime) {
  Start({.newcomers_max = 1});
  const FileDescriptor newcomer = Connect();
  AwaitCounts(1, 0, 0);
  EXPECT_FALSE(connections_->HasPlace());

  milliseconds_ += 500;

  EXPECT_TRUE(connections_->HasPlace());
}

TEST_F(ConnectionsTest, AMembersConnectionStaysAndLeavesItsPlaceToTheNext) {
  Start({.strangers_max = 1});
  const auto client = NewClient();
  ComeAsMember(*client, 3);
  AwaitCounts(0, 0, 1);
  const FileDescriptor stranger = Connect();
  AwaitCounts(1, 0, 1);

  milliseconds_ += 600'000;

  EXPECT_TRUE(IsClosed(stranger));
  AwaitCounts(0, 0, 1);
  ComeAsMember(*client, 3);
  AwaitCounts(0, 0, 1);
}

TEST_F(ConnectionsTest, WhoGoesAtOnceKeepsThePlaceForAWhile) {
  Start({.strangers_max = 1});
  {
    const FileDescriptor brief = Connect();
    AwaitCounts(1, 0, 0);
  }
  AwaitCounts(0, 0, 0);
  EXPECT_FALSE(connections_->HasPlace());
  const FileDescriptor next = Connect();

  milliseconds_ += 1'000;

  EXPECT_GT(Receive(next), 0);
}

TEST_F(ConnectionsTest, GuestsHavePlacesOfTheirOwnUntilTheyRest) {
  Start({.strangers_max = 8, .guests_max = 1});
  const auto guest = NewClient();
  ComeAsGuest(*guest);
  AwaitCounts(0, 1, 0);
  const auto one_too_many = NewClient();
  ComeAsGuest(*one_too_many);
  AwaitCounts(1, 1, 0);

  milliseconds_ += 60'000;

  AwaitCounts(0, 0, 0);
  const auto later = NewClient();  // The others may not have noticed yet that they are closed.
  ComeAsGuest(*later);
  AwaitCounts(0, 1, 0);
}

TEST_F(ConnectionsTest, AMemberHasSoManyConnections) {
  Start({.strangers_max = 8, .connections_of_member_max = 2});
  std::vector<std::unique_ptr<v1::Coordinator::Stub>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(NewClient());
    ComeAsMember(*clients.back(), 3);
  }
  AwaitCounts(1, 0, 2);
  clients.push_back(NewClient());
  ComeAsMember(*clients.back(), 4);
  AwaitCounts(1, 0, 3);
}

TEST_F(ConnectionsTest, ACallHasToSayForWhomItIsEvenOnAMembersConnection) {
  Start({});
  const auto client = NewClient();
  ComeAsMember(*client, 3);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = client->Heartbeat(&context);
  stream->WaitForInitialMetadata();

  milliseconds_ += 5'000;

  v1::HeartbeatReply reply;
  EXPECT_FALSE(stream->Read(&reply));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("SILENT: the call has not said within 5.00 s"));
  ComeAsMember(*client, 3);
  AwaitCounts(0, 0, 1);
}

TEST_F(ConnectionsTest, AConnectionOfNoMemberHasFewCalls) {
  Start({.calls_of_others_max = 2});
  const auto client = NewClient();
  SilentCalls calls(*client);
  for (int i = 0; i < 3; ++i) calls.Open().WaitForInitialMetadata();
  EXPECT_EQ(calls.at(2).Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);

  ComeAsMember(*client, 3);
  for (int i = 0; i < 2; ++i) calls.Open().WaitForInitialMetadata();

  for (size_t i : {0, 1, 3, 4}) {
    calls.at(i).WritesDone();
    EXPECT_TRUE(calls.at(i).Finish().ok()) << i;
  }
}

TEST_F(ConnectionsTest, WhoIsNoMemberMakesOnlySoManyCalls) {
  Start({.strangers_max = 1, .calls_at_once = 5, .calls_per_second = 1});
  const auto guest = NewClient();
  for (int i = 0; i < 5; ++i) ComeAsGuest(*guest);
  milliseconds_ += 2'000;
  ComeAsGuest(*guest);
  ComeAsGuest(*guest);
  AwaitCounts(0, 1, 0);
  AskOnceTooOften(*guest);

  AwaitCounts(0, 0, 0);
  log_.WaitFor("reason=\"no member makes so many calls\"");
  milliseconds_ += 10'000;
  const auto member = NewClient();
  for (int i = 0; i < 20; ++i) ComeAsMember(*member, 3);
  AwaitCounts(0, 0, 1);
}

TEST_F(ConnectionsTest, WhoIsNoMemberSendsOnlySoMuchAndKeepsItsPlaceForThat) {
  Start({.strangers_max = 1,
         .bytes_at_once = 10'000,
         .bytes_per_second = 1'000,
         .bytes_grace = 5'000});

  const FileDescriptor flood = ConnectAndSend(20'000);

  AwaitCounts(0, 0, 0);
  milliseconds_ += 1'999;
  EXPECT_FALSE(connections_->HasPlace()) << "bytes prolong the time";
  milliseconds_ += 8'001;
  EXPECT_TRUE(connections_->HasPlace());
}

TEST_F(ConnectionsTest, AfterAFloodStrangersHaveFewPlacesForAMinute) {
  Start({.strangers_max = 4,
         .others_max_in_alarm = 1,
         .introduction_time = absl::Hours(1),
         .pressed_time = absl::Hours(1),
         .bytes_at_once = 10'000,
         .bytes_grace = 5'000});
  const FileDescriptor flood = ConnectAndSend(20'000);
  AwaitCounts(0, 0, 0);
  milliseconds_ += 10'000;
  EXPECT_TRUE(connections_->HasPlace()) << "it does not keep its place any more";

  const FileDescriptor one = Connect();
  AwaitCounts(1, 0, 0);
  EXPECT_FALSE(connections_->HasPlace());

  milliseconds_ += 50'000;
  EXPECT_TRUE(connections_->HasPlace());
}

TEST_F(ConnectionsTest, AStrangerThatSendsMuchAndGoesRaisesTheAlarmToo) {
  Start({.strangers_max = 4, .others_max_in_alarm = 1, .bytes_of_stranger = 1'000});
  (void)ConnectAndSend(2'000);
  AwaitCounts(0, 0, 0);
  milliseconds_ += 5'000;
  EXPECT_TRUE(connections_->HasPlace()) << "it does not keep its place any more";

  const FileDescriptor one = Connect();
  AwaitCounts(1, 0, 0);

  EXPECT_FALSE(connections_->HasPlace());
}

TEST_F(ConnectionsTest, AGuestSendsLessAtOnceThanAStranger) {
  Start({.bytes_at_once_of_guest = 2'000, .bytes_per_second = 0, .bytes_for_each_sent = 0});
  const auto guest = NewClient();
  ComeAsGuest(*guest);
  AwaitCounts(0, 1, 0);
  grpc::ClientContext context;
  SetDeadline(context);
  context.AddMetadata("long", std::string(3'000, 'x'));
  v1::RunStatus reply;

  (void)guest->GetStatus(&context, {}, &reply);  // The answer may still arrive.

  AwaitCounts(0, 0, 0);
  log_.WaitFor("reason=\"no member sends so much\"");
}

TEST_F(ConnectionsTest, WhatAGuestDidNotUseDoesNotPileUp) {
  Start({.calls_at_once = 5, .calls_per_second = 1});
  const auto guest = NewClient();
  ComeAsGuest(*guest);
  milliseconds_ += 50'000;
  for (int i = 0; i < 5; ++i) ComeAsGuest(*guest);
  AwaitCounts(0, 1, 0);
  AskOnceTooOften(*guest);

  AwaitCounts(0, 0, 0);
}

TEST_F(ConnectionsTest, WhoSendsMuchWhileItWaitsTakesNoPlace) {
  Start({.strangers_max = 1});
  const FileDescriptor first = Connect();
  AwaitCounts(1, 0, 0);
  const FileDescriptor flood = Connect();
  const std::string bytes(5'000, 'x');
  EXPECT_EQ(send(flood.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 5'000);

  milliseconds_ += 2'000;

  EXPECT_TRUE(IsClosed(first));
  log_.WaitFor("reason=\"no member sends so much\"");
  AwaitCounts(0, 0, 0);
  EXPECT_TRUE(connections_->HasPlace());
}

TEST_F(ConnectionsTest, AStrangerMakesFewCallsBeforeItSaysWhoItIs) {
  Start({.strangers_max = 1, .calls_at_once_of_stranger = 2, .calls_per_second = 0});
  const auto client = NewClient();
  SilentCalls calls(*client);
  for (int i = 0; i < 2; ++i) calls.Open().WaitForInitialMetadata();
  calls.Open();

  log_.WaitFor("reason=\"no member makes so many calls\"");

  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(calls.at(i).Finish().error_code(), grpc::StatusCode::UNAVAILABLE) << i;
  }
}

TEST_F(ConnectionsTest, AGuestThatCallsTooOftenKeepsItsPlace) {
  Start({.strangers_max = 1, .calls_at_once = 1, .calls_per_second = 1});
  const auto guest = NewClient();
  ComeAsGuest(*guest);
  AwaitCounts(0, 1, 0);
  AskOnceTooOften(*guest);

  AwaitCounts(0, 0, 0);
  EXPECT_FALSE(connections_->HasPlace());
  milliseconds_ += 10'000;
  EXPECT_TRUE(connections_->HasPlace());
}

TEST_F(ConnectionsTest, ConnectionsOverIpv6AreToldApartToo) {
  if (!TcpListener::Listen("[::1]", 0).ok()) GTEST_SKIP() << "no IPv6 here";
  Start({}, "[::1]");
  const auto member = NewClient();
  const auto guest = NewClient();
  ComeAsMember(*member, 3);
  ComeAsGuest(*guest);

  AwaitCounts(0, 1, 1);
}

}  // namespace
}  // namespace slipstream
