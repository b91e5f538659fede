#include "server/control_plane/server_sync.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/process/version.h"
#include "server/control_plane/orders_wire.h"
#include "tests/support/captured_log.h"
#include "tests/support/loopback.h"
#include "tests/support/silent_port.h"

namespace slipstream {
namespace {

/// Records the orders that it is given.
class RecordingSink final : public OrdersSink {
 public:
  void OnOrders(const ServerOrders& orders) override {
    MutexLock lock(mutex_);
    orders_.push_back(orders);
    arrived_.NotifyAll();
  }
  void OnUpstream(const std::string& address) override {
    MutexLock lock(mutex_);
    upstream_ = address;
  }
  void OnCoordinatorAnswered() override {
    MutexLock lock(mutex_);
    ++answers_;
    arrived_.NotifyAll();
  }
  void Describe(v1::SyncServerRequest& request) override {
    request.set_initialized(true);
    request.set_members_max(12);
    request.mutable_progress()->set_version(6);
    request.mutable_status()->set_version(5);
  }

  std::string upstream() {
    MutexLock lock(mutex_);
    return upstream_;
  }
  int answers() {
    MutexLock lock(mutex_);
    return answers_;
  }

  std::vector<ServerOrders> WaitFor(size_t count) {
    MutexLock lock(mutex_);
    while (orders_.size() < count) arrived_.Wait(mutex_);
    return orders_;
  }

 private:
  Mutex mutex_;
  CondVar arrived_;
  std::vector<ServerOrders> orders_ ABSL_GUARDED_BY(mutex_);
  std::string upstream_ ABSL_GUARDED_BY(mutex_);
  int answers_ ABSL_GUARDED_BY(mutex_) = 0;
};

/// Answers calls one after another as scripted, and repeats the last answer.
class ScriptedCoordinator final : public v1::Coordinator::Service {
 public:
  using Answer = std::pair<grpc::Status, ServerOrders>;

  /// In its first `waits` answers it waits for servers.
  explicit ScriptedCoordinator(std::vector<Answer> script, size_t waits = 0)
      : waits_(waits), script_(std::move(script)) {}

  grpc::Status SyncServer(grpc::ServerContext*, const v1::SyncServerRequest* request,
                          v1::SyncServerReply* reply) override {
    MutexLock lock(mutex_);
    requests_.push_back(*request);
    const Answer& answer = script_[std::min(requests_.size(), script_.size()) - 1];
    *reply = ToWire(answer.second);
    reply->set_upstream("localhost:8");
    reply->set_awaits_servers(requests_.size() <= waits_);
    return answer.first;
  }

  std::vector<v1::SyncServerRequest> requests() {
    MutexLock lock(mutex_);
    return requests_;
  }

 private:
  const size_t waits_;
  Mutex mutex_;
  std::vector<Answer> script_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::SyncServerRequest> requests_ ABSL_GUARDED_BY(mutex_);
};

ServerOrders Orders(uint64_t number, Phase phase, uint64_t run = 7) {
  ServerOrders orders;
  orders.number = number;
  orders.run = run;
  orders.phase = phase;
  return orders;
}

class ServerSyncTest : public testing::Test {
 protected:
  void Start(std::vector<ScriptedCoordinator::Answer> script, size_t waits = 0) {
    coordinator_ = std::make_unique<ScriptedCoordinator>(std::move(script), waits);
    loopback_ = ServeOnLoopback(*coordinator_);
    ASSERT_NE(loopback_.server, nullptr);
    StartAgainst(loopback_.address(), absl::Milliseconds(200));
  }

  void StartAgainst(const std::string& address, absl::Duration unreachable_max) {
    ServerSync::Options options;
    options.coordinator = address;
    options.talk = {.shard = ShardId{3},
                    .address = "localhost:9",
                    .settings = "settings",
                    .instance = 11,
                    .pause_min = absl::Milliseconds(1),
                    .pause_max = absl::Milliseconds(2)};
    options.unreachable_max = unreachable_max;
    sync_ = std::make_unique<ServerSync>(
        options,
        v1::Coordinator::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        sink_);
  }

  absl::Status Result() {
    while (!sync_->result().has_value()) std::this_thread::yield();
    return *sync_->result();
  }

  // Declared first, as the others log.
  CapturedLog log_;
  RecordingSink sink_;
  std::unique_ptr<ScriptedCoordinator> coordinator_;
  Loopback loopback_;
  std::unique_ptr<ServerSync> sync_;
};

TEST_F(ServerSyncTest, HandsOverEachOrderOnceAndReportsUnderIt) {
  ServerOrders last = Orders(3, Phase::kFinished);
  last.may_exit = true;
  Start({{grpc::Status::OK, Orders(1, Phase::kWaitingForServers)},
         {grpc::Status::OK, Orders(1, Phase::kWaitingForServers)},
         {grpc::Status::OK, Orders(2, Phase::kTraining)},
         {grpc::Status::OK, last}});

  EXPECT_TRUE(Result().ok());

  EXPECT_EQ(sink_.WaitFor(3).size(), 3u);
  const std::vector<v1::SyncServerRequest> requests = coordinator_->requests();
  ASSERT_EQ(requests.size(), 5u);
  EXPECT_EQ(requests[0].orders_seen(), 0u);
  EXPECT_EQ(requests[3].orders_seen(), 2u);
  EXPECT_EQ(requests[4].orders_seen(), 3u) << "the coordinator must hear that the end is known";
  EXPECT_EQ(requests[4].shard(), 3u);
  EXPECT_EQ(requests[4].address(), "localhost:9");
  EXPECT_EQ(requests[4].instance(), 11u);
  EXPECT_EQ(requests[4].protocol(), kProtocol);
  EXPECT_EQ(requests[4].status().version(), 5u);
  EXPECT_EQ(requests[4].progress().version(), 6u);
  EXPECT_TRUE(requests[4].initialized());
  EXPECT_EQ(sink_.upstream(), "localhost:8");
}

TEST_F(ServerSyncTest, TakesNoAnswerOfACoordinatorThatHasYetToHearServers) {
  ServerOrders last = Orders(1, Phase::kFinished);
  last.may_exit = true;
  const ServerOrders old = Orders(1, Phase::kTraining);
  Start({{grpc::Status::OK, old}, {grpc::Status::OK, old}, {grpc::Status::OK, last}}, 2);

  EXPECT_TRUE(Result().ok());

  EXPECT_EQ(sink_.answers(), 1);
  EXPECT_EQ(sink_.WaitFor(1)[0].phase, Phase::kFinished);
}

TEST_F(ServerSyncTest, OutlivesACoordinatorThatIsAwayForAWhile) {
  Start({{grpc::Status::OK, Orders(1, Phase::kTraining)},
         {{grpc::StatusCode::UNAVAILABLE, "away"}, {}},
         {{grpc::StatusCode::UNAVAILABLE, "away"}, {}},
         {grpc::Status::OK, Orders(2, Phase::kDraining)}});

  EXPECT_EQ(sink_.WaitFor(2)[1].phase, Phase::kDraining);
  EXPECT_FALSE(sync_->result().has_value());
}

TEST_F(ServerSyncTest, EndsWhenTheCoordinatorRefusesTheServer) {
  Start({{{grpc::StatusCode::INVALID_ARGUMENT, "seed is 2 against 1"}, {}}});

  const absl::Status result = Result();

  EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(result.message(), "seed is 2 against 1");
}

TEST_F(ServerSyncTest, EndsWhenTheCoordinatorBeganAnotherRun) {
  Start({{grpc::Status::OK, Orders(5, Phase::kTraining)},
         {grpc::Status::OK, Orders(1, Phase::kWaitingForServers, 8)}});

  EXPECT_EQ(Result().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ServerSyncTest, EndsWithTheReasonOfAFailedRun) {
  ServerOrders failed = Orders(2, Phase::kFailed);
  failed.failure = "no workers";
  failed.may_exit = true;
  Start({{grpc::Status::OK, failed}});

  const absl::Status result = Result();

  EXPECT_EQ(result.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(result.message(), "the run failed: no workers");
}

TEST_F(ServerSyncTest, GivesUpOnACoordinatorThatNeverAnswers) {
  const SilentPort port;
  StartAgainst(port.address(), absl::Milliseconds(200));

  const absl::Status result = Result();

  EXPECT_EQ(result.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(result.message().find("connect"), absl::string_view::npos) << result;
}

TEST_F(ServerSyncTest, WaitsForACoordinatorThatComesLater) {
  const SilentPort port;
  StartAgainst(port.address(), absl::Minutes(1));
  log_.WaitFor("waiting for the coordinator at=" + port.address());

  coordinator_ = std::make_unique<ScriptedCoordinator>(
      std::vector<ScriptedCoordinator::Answer>{{grpc::Status::OK, Orders(1, Phase::kTraining)}});
  grpc::ServerBuilder builder;
  builder.AddListeningPort(port.address(), grpc::InsecureServerCredentials());
  builder.RegisterService(coordinator_.get());
  loopback_.server = builder.BuildAndStart();
  ASSERT_NE(loopback_.server, nullptr);

  EXPECT_EQ(sink_.WaitFor(1)[0].phase, Phase::kTraining);
  EXPECT_EQ(log_.Count("waiting for the coordinator"), 1);
  EXPECT_EQ(log_.Count("coordinator lost"), 0);
}

TEST_F(ServerSyncTest, NamesTheProcessThatHasItsPlaceUntilItTakesOver) {
  const grpc::Status refused = {grpc::StatusCode::ALREADY_EXISTS,
                                "shard 3 is served by another process, at other:7"};
  Start({{refused, {}}, {refused, {}}, {grpc::Status::OK, Orders(1, Phase::kTraining)}});

  sink_.WaitFor(1);

  log_.WaitFor("took over from the other process");
  EXPECT_EQ(log_.Count("at other:7"), 1);
  EXPECT_EQ(log_.Count("5.00 s"), 1);
  EXPECT_EQ(log_.Count("waiting for the coordinator"), 0);
}

TEST_F(ServerSyncTest, GivesUpWhereAnotherProcessKeepsItsPlace) {
  Start({{{grpc::StatusCode::ALREADY_EXISTS, "shard 3 is served by another process, at other:7"},
          {}}});

  const absl::Status result = Result();

  EXPECT_EQ(result.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(result.message().find("at other:7; it did not end within"), absl::string_view::npos)
      << result;
}

TEST_F(ServerSyncTest, EndsAtOnceOnceAnotherProcessHasTakenItsPlace) {
  Start({{grpc::Status::OK, Orders(1, Phase::kTraining)},
         {{grpc::StatusCode::FAILED_PRECONDITION,
           "another process has taken the place of this one for shard 3"},
          {}}});

  EXPECT_EQ(Result().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ServerSyncTest, StopsWhileItWaitsForACoordinator) {
  const SilentPort port;
  StartAgainst(port.address(), absl::Minutes(1));
  log_.WaitFor("waiting for the coordinator");

  sync_->Stop();

  EXPECT_EQ(Result().code(), absl::StatusCode::kCancelled);
}

TEST_F(ServerSyncTest, StopsInTheMiddleOfACall) {
  Start({{grpc::Status::OK, Orders(1, Phase::kTraining)}});
  sink_.WaitFor(1);

  sync_->Stop();

  EXPECT_EQ(Result().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace slipstream
