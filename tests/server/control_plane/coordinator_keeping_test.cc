// Tests that nobody hears of anything that a restarted coordinator would not know.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "tests/server/control_plane/coordinator_service_fixture.h"

namespace slipstream {
namespace {

/// A disk for the coordinator's state that the test can hold up.
class HeldDisk {
 public:
  absl::Status Keep(const std::string& state) {
    MutexLock lock(mutex_);
    ++tries_;
    tried_.NotifyAll();
    while (is_held_) released_.Wait(mutex_);
    if (fails_) return absl::DataLossError("the disk is full");
    state_ = state;
    return absl::OkStatus();
  }

  void Hold() {
    MutexLock lock(mutex_);
    is_held_ = true;
  }

  void Release(bool fails = false) {
    {
      MutexLock lock(mutex_);
      is_held_ = false;
      fails_ = fails;
    }
    released_.NotifyAll();
  }

  /// Waits until the state is being written once more than `tries` times.
  void AwaitTry(int tries) {
    MutexLock lock(mutex_);
    while (tries_ <= tries) tried_.Wait(mutex_);
  }

  int tries() {
    MutexLock lock(mutex_);
    return tries_;
  }

  std::string state() {
    MutexLock lock(mutex_);
    return state_;
  }

 private:
  Mutex mutex_;
  CondVar tried_;
  CondVar released_;
  bool is_held_ ABSL_GUARDED_BY(mutex_) = false;
  bool fails_ ABSL_GUARDED_BY(mutex_) = false;
  int tries_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string state_ ABSL_GUARDED_BY(mutex_);
};

class CoordinatorKeepingTest : public CoordinatorServiceTest {
 protected:
  CoordinatorKeepingTest() {
    options_.keep = [this](const std::string& state, const RunSpec&) { return disk_.Keep(state); };
  }

  std::future<v1::Identity> RegisterLater() {
    return std::async(std::launch::async, [this] { return Register(); });
  }

  HeldDisk disk_;
};

TEST_F(CoordinatorKeepingTest, AWorkerLearnsItsIncarnationOnceTheDiskHasIt) {
  Start();
  Sync();
  const int tries = disk_.tries();
  disk_.Hold();
  std::future<v1::Identity> registered = RegisterLater();
  disk_.AwaitTry(tries);
  EXPECT_EQ(registered.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  const std::string before = disk_.state();

  disk_.Release();

  EXPECT_EQ(registered.get().incarnation(), 1u);
  EXPECT_NE(disk_.state(), before);
}

TEST_F(CoordinatorKeepingTest, AnswersWaitUntilADiskThatWasFullTakesTheState) {
  Start();
  Sync();
  const int tries = disk_.tries();
  disk_.Release(/*fails=*/true);
  std::future<v1::Identity> registered = RegisterLater();
  disk_.AwaitTry(tries);
  disk_.AwaitTry(tries + 1);
  EXPECT_EQ(registered.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
  clock_.Advance(absl::Seconds(1));  // The status before is too old then.
  EXPECT_EQ(Status().state_not_kept(), "the disk is full");

  disk_.Release();

  EXPECT_EQ(registered.get().incarnation(), 1u);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Status().state_not_kept(), "");
}

TEST_F(CoordinatorKeepingTest, ACoordinatorThatStopsWhileItsDiskIsFullSaysSoToWhoWaits) {
  Start();
  Sync();
  const int tries = disk_.tries();
  disk_.Release(/*fails=*/true);
  std::future<grpc::Status> registered = std::async(std::launch::async, [this] {
    v1::RegisterReply reply;
    return Call(&Stub::Register, v1::RegisterRequest(), reply);
  });
  disk_.AwaitTry(tries);

  service_->Stop();

  EXPECT_EQ(registered.get().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(CoordinatorKeepingTest, ARestartedCoordinatorKnowsItsMembersAndTheirWork) {
  Train();
  const v1::GetWorkReply first = GetWork(ada_);
  ASSERT_EQ(first.state(), v1::GetWorkReply::UNIT);
  const std::string kept = disk_.state();
  service_->Stop();
  loopback_.server->Shutdown();
  service_.reset();

  options_.kept = {kept, Spec()};
  Start();
  seen_ = 0;
  Sync(/*initialized=*/true);

  EXPECT_EQ(Status().phase(), v1::TRAINING);
  Beat(ada_);
  Beat(bob_);
  // The unit that was handed out is not handed out again.
  EXPECT_NE(GetWork(ada_).first_batch(), first.first_batch());
  EXPECT_NE(GetWork(bob_).first_batch(), first.first_batch());
}

TEST_F(CoordinatorKeepingTest, ARestartedCoordinatorSaysWhetherItHasHeardAllServers) {
  RunSpec spec = Spec();
  spec.cluster.servers = {"localhost:1", "localhost:2"};
  const auto waits = [this](uint32_t shard) {
    v1::SyncServerRequest request;
    request.set_shard(shard);
    request.set_address(shard == 0 ? "localhost:1" : "localhost:2");
    request.set_instance(shard + 1);
    v1::SyncServerReply reply;
    EXPECT_TRUE(Sync(request, reply).ok());
    return reply.awaits_servers();
  };
  Start(spec);
  EXPECT_FALSE(waits(0));
  EXPECT_FALSE(waits(1));
  const std::string kept = disk_.state();
  service_->Stop();
  loopback_.server->Shutdown();
  service_.reset();

  options_.kept = {kept, spec};
  Start(spec);

  EXPECT_TRUE(waits(0)) << "the other may know that this state is an older copy";
  EXPECT_FALSE(waits(1));
  EXPECT_FALSE(waits(0));
}

}  // namespace
}  // namespace slipstream
