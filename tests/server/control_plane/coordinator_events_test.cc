// Tests of the events that the status has.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "common/base/mutex.h"
#include "tests/server/control_plane/coordinator_service_fixture.h"

namespace slipstream {
namespace {

class CoordinatorEventsTest : public CoordinatorServiceTest {
 protected:
  CoordinatorEventsTest() {
    options_.keep = [disk = disk_](const std::string& state, const RunSpec&) {
      MutexLock lock(disk->mutex);
      if (disk->is_full) return absl::Status(absl::DataLossError("the disk is full"));
      disk->state = state;
      return absl::OkStatus();
    };
  }

  std::string Kept() {
    MutexLock lock(disk_->mutex);
    return disk_->state;
  }

  void SetFull(bool is_full) {
    MutexLock lock(disk_->mutex);
    disk_->is_full = is_full;
  }

  /// Waits until `read` returns something with `text`, for a minute at most, and returns it.
  template <typename Read>
  static std::string Await(const Read& read, const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    std::string found = read();
    while (found.find(text) == std::string::npos && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
      found = read();
    }
    EXPECT_THAT(found, testing::HasSubstr(text));
    return found;
  }

  /// Waits until an event has this text, and returns the texts of all, one a line.
  std::string TextsWith(const std::string& text) {
    const auto read = [this] {
      std::string texts;
      const v1::RunStatus status = Status();
      for (const v1::RunEvent& event : status.events()) texts += event.text() + "\n";
      return texts;
    };
    return Await(read, text);
  }

  // The service of the base class writes to it until it is destroyed, after this object.
  struct Disk {
    Mutex mutex;
    std::string state ABSL_GUARDED_BY(mutex);
    bool is_full ABSL_GUARDED_BY(mutex) = false;
  };
  const std::shared_ptr<Disk> disk_ = std::make_shared<Disk>();
};

TEST_F(CoordinatorEventsTest, TheStatusTellsWhatHappenedToWhomAndWhen) {
  const int64_t begin = absl::ToUnixMillis(absl::Now());
  Train();
  ASSERT_TRUE(Leave(bob_).ok());
  TextsWith("worker left worker=1\n");
  const int64_t end = absl::ToUnixMillis(absl::Now());

  const v1::RunStatus status = Status();
  const v1::RunEvent* left = nullptr;
  for (int i = 0; i < status.events_size(); ++i) {
    const v1::RunEvent& event = status.events(i);
    EXPECT_EQ(event.number(), static_cast<uint64_t>(i) + 1);
    EXPECT_GE(event.time_ms(), begin);
    EXPECT_LE(event.time_ms(), end);
    if (event.text() == "worker left worker=1") left = &event;
  }
  ASSERT_NE(left, nullptr);
  EXPECT_EQ(left->kind(), "worker");
  EXPECT_FALSE(left->is_warning());
  EXPECT_EQ(left->worker(), 1u);
  EXPECT_FALSE(left->has_shard());
  EXPECT_EQ(status.events(0).kind(), "server");
  EXPECT_TRUE(status.events(0).has_shard());
}

TEST_F(CoordinatorEventsTest, ARestartedCoordinatorTellsWhatHappenedBefore) {
  Train();
  const std::string before = TextsWith("the run's phase changes phase=TRAINING\n");
  Await([this] { return Kept(); }, "phase=TRAINING");
  service_->Stop();
  loopback_.server->Shutdown();
  service_.reset();

  options_.kept = {Kept(), Spec()};
  Start();

  EXPECT_EQ(TextsWith("the coordinator was restarted\n"),
            before + "the coordinator was restarted\n");
  Await([this] { return Kept(); }, "was restarted");
}

TEST_F(CoordinatorEventsTest, ADiskThatIsFullAndOneThatTakesTheStateAgainAreEvents) {
  Start();
  Sync();
  SetFull(true);
  std::future<v1::Identity> registered =
      std::async(std::launch::async, [this] { return Register(); });
  TextsWith(
      "the coordinator's state cannot be kept; calls wait until it can "
      "reason=\"the disk is full\"\n");

  SetFull(false);

  TextsWith("the coordinator's state is kept again\n");
  registered.get();
}

TEST_F(CoordinatorEventsTest, WhatNoMessageTellsIsFoundByLooking) {
  Train();

  clock_.Advance(absl::Seconds(3));

  TextsWith("server silent shard=0 address=localhost:1\n");
}

TEST_F(CoordinatorEventsTest, AChangeIsSaidToBeOfWhoeverAsked) {
  options_.read_change = [](const RunSpec& run, const std::vector<std::string>&) {
    RunChange change = {.settings = run, .sets_policy = true};
    change.settings.consistency.policy = ConsistencySpec::Policy::kAsync;
    return change;
  };
  Train();
  v1::ChangeRunRequest request;
  request.add_settings("consistency.policy=async");
  v1::ChangeRunReply reply;

  const grpc::Status changed = Call(&Stub::ChangeRun, request, reply);

  ASSERT_TRUE(changed.ok()) << changed.error_message();
  const std::string texts = TextsWith("an operator changes the run policy=async ");
  EXPECT_NE(texts.find(" after_epoch=0 by=127.0.0.1:"), std::string::npos) << texts;
}

}  // namespace
}  // namespace slipstream
