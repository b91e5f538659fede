#include "worker/client/shard_exchange.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/mutex.h"
#include "common/layout/tensor_layout.h"
#include "common/local/local_socket.h"
#include "common/process/version.h"
#include "proto/shard.grpc.pb.h"
#include "server/listen/local_listener.h"
#include "tests/support/fake_shard.h"
#include "tests/support/loopback.h"
#include "tests/support/silent_port.h"
#include "worker/client/server_addresses.h"
#include "worker/client/shard_channel.h"

namespace slipstream {
namespace {

constexpr size_t kValues = 100;

ShardMap OneShard() {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("all", {kValues}).ok());
  return ShardMap::Cut(layout, 1).value();
}

/// One shard, and a client with its own clock that tries to reach it for half a minute.
class ShardExchangeTest : public testing::Test {
 protected:
  ShardExchangeTest() {
    options_.now = [this] { return now_; };
    options_.channel.transport = WireSpec::Transport::kTcp;
  }

  absl::StatusOr<PushReply> Push() {
    ShardClient shard({.address = shard_.address(), .range = {0, kValues}}, options_, sleeper_,
                      cancel_);
    ShardPush push;
    push.header.identity = {.run = 5, .worker = WorkerId{1}, .incarnation = Incarnation{2}};
    push.header.sequence = Sequence{1};
    push.header.shard_map = map_.fingerprint();
    push.header.trailer.absent = absent_;
    push.values = gradient_;
    ShardExchange exchange(shard, push, WeightsArrival({}));
    const absl::StatusOr<std::optional<ExchangeAnswer>> answer = exchange.Next();
    if (!answer.ok()) return answer.status();
    EXPECT_EQ(exchange.Next().value(), std::nullopt);
    return (*answer)->push;
  }

  const ShardMap map_ = OneShard();
  const std::vector<float> gradient_ = std::vector<float>(kValues, 1);
  TensorSet absent_;
  FakeShard shard_{kValues, map_.fingerprint()};
  absl::Time now_;
  ShardOptions options_;
  CancelSwitch cancel_;
  Sleeper sleeper_ = [this](absl::Duration wait) {
    now_ += wait;
    return true;
  };
};

// Under hardsync, a round may wait for a slow member for longer than a single call lasts.
TEST_F(ShardExchangeTest, AnAnswerThatIsLateIsNoAbsenceHoweverOften) {
  options_.answer_timeout = absl::Milliseconds(50);
  options_.now = [this] { return now_ += absl::Seconds(10); };  // Passes at each look.
  for (int i = 0; i < 3; ++i) shard_.AddFault(FakeShard::Fault::kAnswerNever);

  const absl::StatusOr<PushReply> reply = Push();

  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_GE(shard_.received(), 4);
  EXPECT_EQ(shard_.taken().size(), 1u);
}

TEST_F(ShardExchangeTest, TheShardLearnsWhatThePushHasNoGradientFor) {
  absent_.Add(3);

  ASSERT_TRUE(Push().ok());

  EXPECT_EQ(shard_.taken().at(0).absent, absent_);
}

TEST_F(ShardExchangeTest, AShardThatFailsForTooLongIsGivenUp) {
  for (int i = 0; i < 1000; ++i) shard_.AddFault(FakeShard::Fault::kBreakBeforeTaking);
  const absl::Time begin = now_;

  const absl::Status status = Push().status();

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find(shard_.address()), absl::string_view::npos) << status;
  EXPECT_EQ(now_ - begin, options_.retry.give_up_after);
}

TEST_F(ShardExchangeTest, AShardThatHasTooMuchToDoIsAskedAgainAndGivenUpAsBusy) {
  for (int i = 0; i < 3; ++i) shard_.AddFault(FakeShard::Fault::kRefuseForLackOfMemory);
  EXPECT_TRUE(Push().ok());

  for (int i = 0; i < 1000; ++i) shard_.AddFault(FakeShard::Fault::kRefuseForLackOfMemory);
  EXPECT_EQ(Push().status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ShardExchangeTest, AShardThatStaysOverloadedIsGivenUp) {
  for (int i = 0; i < 3; ++i) shard_.AddFault(FakeShard::Fault::kRetryLater);
  options_.overload_timeout = absl::Milliseconds(1);

  const absl::Status status = Push().status();

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("overloaded"), absl::string_view::npos) << status;
}

}  // namespace

namespace {

using Transport = WireSpec::Transport;

/// A shard that answers one question, and records the path over which it was asked.
class Shard final : public v1::Shard::Service {
 public:
  /// `name` is the local socket that it offers. A Server may or may not listen on it.
  explicit Shard(std::string name) : name_(std::move(name)) {}

  grpc::Status GetTransports(grpc::ServerContext* context, const v1::GetTransportsRequest* request,
                             v1::GetTransportsReply* reply) override {
    EXPECT_EQ(request->protocol(), kProtocol);
    MutexLock lock(mutex_);
    peer_ = context->peer();
    reply->set_local_socket(name_);
    return grpc::Status::OK;
  }

  std::string peer() const {
    MutexLock lock(mutex_);
    return peer_;
  }

 private:
  const std::string name_;
  mutable Mutex mutex_;
  std::string peer_ ABSL_GUARDED_BY(mutex_);
};

/// A server with a shard at `address`, and a local socket if `listens`.
struct Server {
  explicit Server(const std::string& name, bool listens = true,
                  const std::string& address = "127.0.0.1:0")
      : shard(name) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &loopback.port);
    builder.RegisterService(&shard);
    loopback.server = builder.BuildAndStart();
    if (listens) local = LocalListener::Start(name, *loopback.server).value();
  }
  ~Server() {
    local.reset();
    loopback.server->Shutdown(std::chrono::system_clock::now());
  }

  Shard shard;
  Loopback loopback;
  std::unique_ptr<LocalListener> local;
};

class ShardChannelTest : public testing::Test {
 protected:
  ShardChannel Channel(const Server& server, Transport transport) {
    return ShardChannel(server.loopback.address(), {.transport = transport}, cancel_);
  }

  /// Calls the shard through `channel`. Returns the path that the call took: "ipv4", or "fd", which
  /// is gRPC's name for a socket that it was given.
  static std::string PathOf(ShardChannel& channel, const Server& server) {
    const absl::StatusOr<std::shared_ptr<grpc::Channel>> path = channel.Get();
    if (!path.ok()) return path.status().ToString();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::GetTransportsRequest request;
    request.set_protocol(kProtocol);
    v1::GetTransportsReply reply;
    const grpc::Status status = v1::Shard::NewStub(*path)->GetTransports(&context, request, &reply);
    if (!status.ok()) return status.error_message();
    const std::string peer = server.shard.peer();
    return peer.substr(0, peer.find(':'));
  }

  CancelSwitch cancel_;
};

TEST_F(ShardChannelTest, OnOneMachineBothUseALocalSocket) {
  const Server server(NewLocalName());
  for (const Transport transport : {Transport::kAuto, Transport::kUnix}) {
    ShardChannel channel = Channel(server, transport);
    EXPECT_EQ(PathOf(channel, server), "fd");
    EXPECT_EQ(channel.Get().value(), channel.Get().value()) << "one connection for all calls";
  }
}

TEST_F(ShardChannelTest, TcpIsUsedWhereItIsChosen) {
  const Server server(NewLocalName());
  ShardChannel channel = Channel(server, Transport::kTcp);
  EXPECT_EQ(PathOf(channel, server), "ipv4");
}

TEST_F(ShardChannelTest, TcpIsUsedWhereTheSocketIsNotOnThisMachine) {
  // To a worker on another machine, the name looks like one on which nobody listens.
  const Server server(NewLocalName(), /*listens=*/false);
  ShardChannel channel = Channel(server, Transport::kAuto);
  EXPECT_EQ(PathOf(channel, server), "ipv4");
}

TEST_F(ShardChannelTest, TcpIsUsedWhereTheShardOffersNothing) {
  const Server server("", /*listens=*/false);
  ShardChannel channel = Channel(server, Transport::kAuto);
  EXPECT_EQ(PathOf(channel, server), "ipv4");
}

TEST_F(ShardChannelTest, ASocketThatWasDemandedAndIsNotThereIsAnErrorWithItsRemedy) {
  const Server server(NewLocalName(), /*listens=*/false);
  const absl::Status status = Channel(server, Transport::kUnix).Get().status();

  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  for (const char* part : {"wire.transport is unix", "another machine", "use auto or tcp"}) {
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
  }
}

TEST_F(ShardChannelTest, AgreesAnewWithAServerThatWasReplaced) {
  const SilentPort port;  // Nobody else gets it between the two servers.
  auto server = std::make_unique<Server>(NewLocalName(), /*listens=*/true, port.address());
  ShardChannel channel = Channel(*server, Transport::kAuto);
  ASSERT_EQ(PathOf(channel, *server), "fd");
  server.reset();
  const Server next(NewLocalName(), /*listens=*/false, port.address());

  EXPECT_NE(PathOf(channel, next), "ipv4") << "the old connection is broken";
  // Retry like a caller. More calls may fail until the broken TCP connection is noticed, too.
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(20);
  std::string path;
  while (path != "ipv4" && std::chrono::system_clock::now() < deadline) {
    channel.OnFailure();
    channel.peer().channel->WaitForConnected(deadline);
    path = PathOf(channel, next);
  }
  EXPECT_EQ(path, "ipv4");
}

TEST_F(ShardChannelTest, AgreesAnewWithAServerThatIsElsewhere) {
  auto server = std::make_unique<Server>(NewLocalName());
  ServerAddresses addresses;
  ShardChannel channel(server->loopback.address(), {.addresses = &addresses}, cancel_, ShardId{2});
  ASSERT_EQ(PathOf(channel, *server), "fd");
  EXPECT_FALSE(channel.HasMoved());
  const Server remote(NewLocalName(), /*listens=*/false);
  const Server local(NewLocalName());
  server.reset();

  addresses.Note(ShardId{2}, remote.loopback.address());
  EXPECT_TRUE(channel.HasMoved());
  EXPECT_EQ(PathOf(channel, remote), "ipv4");
  EXPECT_EQ(channel.peer().name, "shard 2 at " + remote.loopback.address());

  addresses.Note(ShardId{2}, local.loopback.address());
  EXPECT_EQ(PathOf(channel, local), "fd");
  EXPECT_FALSE(channel.HasMoved());
}

TEST_F(ShardChannelTest, AShardThatCannotBeAskedIsATransientFailure) {
  // Port 1 of this machine is reserved, and no process listens there.
  ShardChannel channel("127.0.0.1:1", {.transport = Transport::kAuto}, cancel_);

  EXPECT_TRUE(absl::IsUnavailable(channel.Get().status())) << channel.Get().status();
}

}  // namespace

}  // namespace slipstream
