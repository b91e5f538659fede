#include "server/control_plane/status_watchers.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/coordinator.grpc.pb.h"
#include "tests/support/loopback.h"

namespace slipstream {
namespace {

using grpc::StatusCode;

// The patience is generous: only broken code takes that long.
constexpr auto kPatience = std::chrono::seconds(30);

class WatchService final : public v1::Coordinator::CallbackService {
 public:
  WatchService(StatusWatchers& watchers, const std::atomic<int64_t>& milliseconds)
      : watchers_(watchers), milliseconds_(milliseconds) {}

  grpc::ServerWriteReactor<v1::RunStatus>* WatchStatus(
      grpc::CallbackServerContext* context, const v1::WatchStatusRequest* request) override {
    return watchers_.Watch(*context, *request,
                           absl::UnixEpoch() + absl::Milliseconds(milliseconds_.load()));
  }

 private:
  StatusWatchers& watchers_;
  const std::atomic<int64_t>& milliseconds_;
};

/// One client's call.
struct Watcher {
  Watcher(v1::Coordinator::Stub& stub, uint32_t interval_ms) {
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    v1::WatchStatusRequest request;
    request.set_interval_ms(interval_ms);
    reader = stub.WatchStatus(&context, request);
  }

  /// Returns the number of updates in the next status; −1 if there is none.
  int Next() {
    v1::RunStatus status;
    return reader->Read(&status) ? static_cast<int>(status.updates()) : -1;
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::RunStatus>> reader;
};

/// Watchers whose clock only the test moves. `updates` counts how many statuses were asked for.
class StatusWatchersTest : public testing::Test {
 protected:
  StatusWatchersTest() : watchers_([this] { return Status(); }) {
    stub_ = v1::Coordinator::NewStub(loopback_.NewChannel());
  }

  ~StatusWatchersTest() override {
    watchers_.Stop();
    loopback_.server->Shutdown(std::chrono::system_clock::now());
  }

  v1::RunStatus Status() {
    v1::RunStatus status;
    status.set_updates(static_cast<uint64_t>(++asked_));
    status.set_phase(is_over_ ? v1::FINISHED : v1::TRAINING);
    status.set_failure(padding_);
    return status;
  }

  void Advance(int64_t milliseconds) { milliseconds_ += milliseconds; }
  void Tick() {
    watchers_.Tick(absl::UnixEpoch() + absl::Milliseconds(milliseconds_.load()), is_over_);
  }

  /// Ticks until `condition` holds. A write may complete a moment after its reader has the message.
  template <typename Condition>
  bool TickUntil(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      poll(nullptr, 0, 1);
      Tick();
    }
    return true;
  }

  /// Ticks until the watcher has its next status, which may not have been sent yet. Returns its
  /// updates.
  int NextWhileTicking(Watcher& watcher) {
    auto next = std::async(std::launch::async, [&watcher] { return watcher.Next(); });
    const bool came = TickUntil(
        [&next] { return next.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
    return came ? next.get() : -1;
  }

  /// Makes statuses larger than what flow control lets through unread. gRPC widens that window when
  /// it has measured the connection (BDP probe), and may then take several megabytes.
  std::unique_ptr<v1::Coordinator::Stub> StubOfOneThatMustRead() {
    padding_ = std::string(size_t{3} << 20, 'x');
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 16);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    return v1::Coordinator::NewStub(grpc::CreateCustomChannel(
        loopback_.address(), grpc::InsecureChannelCredentials(), arguments));
  }

  std::atomic<int64_t> milliseconds_ = 0;
  std::atomic<int> asked_ = 0;
  std::atomic<bool> is_over_ = false;
  std::string padding_;
  StatusWatchers watchers_;
  WatchService service_{watchers_, milliseconds_};
  const Loopback loopback_ = ServeOnLoopback(service_);
  std::unique_ptr<v1::Coordinator::Stub> stub_;
};

TEST_F(StatusWatchersTest, AnswersAtOnceAndThenAtTheInterval) {
  Watcher watcher(*stub_, 500);
  EXPECT_EQ(watcher.Next(), 1);

  Advance(499);
  Tick();
  EXPECT_EQ(asked_, 1);
  Advance(1);
  ASSERT_TRUE(TickUntil([this] { return asked_ == 2; }));

  EXPECT_EQ(watcher.Next(), 2);
}

TEST_F(StatusWatchersTest, WaitsASecondUnlessToldOtherwise) {
  Watcher watcher(*stub_, 0);
  EXPECT_EQ(watcher.Next(), 1);

  Advance(999);
  Tick();
  EXPECT_EQ(asked_, 1);
  Advance(1);

  EXPECT_TRUE(TickUntil([this] { return asked_ == 2; }));
}

TEST_F(StatusWatchersTest, AsksOnceForAllThatAreDue) {
  constexpr int kWatchers = 8;
  constexpr int kRounds = 10;
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < kWatchers; ++i) {
    watchers.push_back(std::make_unique<Watcher>(*stub_, 200));
    ASSERT_GT(watchers.back()->Next(), 0);
  }
  ASSERT_EQ(asked_, kWatchers);

  for (int round = 0; round < kRounds; ++round) {
    const int before = asked_;
    Advance(200);
    for (const auto& watcher : watchers) {
      ASSERT_GT(NextWhileTicking(*watcher), before);
    }
  }

  // Up to twice per round, as some watchers may still be writing when the others are due.
  EXPECT_LE(asked_ - kWatchers, 2 * kRounds);
}

TEST_F(StatusWatchersTest, EndsWithALastStatusWhenTheRunIsOver) {
  Watcher watcher(*stub_, 3'600'000);
  EXPECT_EQ(watcher.Next(), 1);

  is_over_ = true;
  ASSERT_TRUE(TickUntil([this] { return asked_ == 2; }));

  EXPECT_EQ(watcher.Next(), 2);
  EXPECT_EQ(watcher.Next(), -1);
  EXPECT_TRUE(watcher.reader->Finish().ok());
  EXPECT_EQ(watchers_.size(), 0u);
}

TEST_F(StatusWatchersTest, ARunThatIsOverIsShownOnce) {
  is_over_ = true;
  Watcher watcher(*stub_, 100);

  EXPECT_EQ(watcher.Next(), 1);
  EXPECT_EQ(watcher.Next(), -1);
  EXPECT_TRUE(watcher.reader->Finish().ok());
}

TEST_F(StatusWatchersTest, RefusesAnIntervalOutOfBounds) {
  for (const uint32_t interval_ms : {1u, 99u, 3'600'001u}) {
    Watcher watcher(*stub_, interval_ms);
    EXPECT_EQ(watcher.Next(), -1);

    const grpc::Status status = watcher.reader->Finish();

    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message(), "interval_ms must be in [100, 3600000], or 0 for 1000, not " +
                                          std::to_string(interval_ms));
  }
}

TEST_F(StatusWatchersTest, RefusesMoreThanItsBoundUntilOneHasGone) {
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (size_t i = 0; i < StatusWatchers::kWatchersMax; ++i) {
    watchers.push_back(std::make_unique<Watcher>(*stub_, 1000));
    ASSERT_GT(watchers.back()->Next(), 0);
  }
  Watcher refused(*stub_, 1000);
  EXPECT_EQ(refused.Next(), -1);
  EXPECT_EQ(refused.reader->Finish().error_code(), StatusCode::RESOURCE_EXHAUSTED);

  watchers.back()->context.TryCancel();

  ASSERT_TRUE(TickUntil([this] { return watchers_.size() < StatusWatchers::kWatchersMax; }));
  Watcher taken(*stub_, 1000);
  EXPECT_GT(taken.Next(), 0);
}

TEST_F(StatusWatchersTest, AReaderThatDoesNotReadHoldsOneStatus) {
  const auto stub = StubOfOneThatMustRead();
  Watcher slow(*stub, 100);
  ASSERT_TRUE(TickUntil([this] { return asked_ == 1; }));

  for (int i = 0; i < 20; ++i) {
    Advance(1000);
    Tick();
  }
  EXPECT_EQ(asked_, 1) << "nothing is made for a reader that has not taken the last";

  EXPECT_EQ(slow.Next(), 1);
  Advance(1000);
  ASSERT_TRUE(TickUntil([this] { return asked_ == 2; }));
  EXPECT_EQ(slow.Next(), 2);
}

TEST_F(StatusWatchersTest, AReaderThatNeverReadsKeepsNoPlace) {
  const auto stub = StubOfOneThatMustRead();
  Watcher slow(*stub, 100);
  ASSERT_TRUE(TickUntil([this] { return asked_ == 1; }));

  Advance(absl::ToInt64Milliseconds(StatusWatchers::kReadTimeMax));

  EXPECT_TRUE(TickUntil([this] { return watchers_.size() == 0; }));
  slow.context.TryCancel();
}

TEST_F(StatusWatchersTest, AWatcherThatGoesAwayIsForgotten) {
  Watcher watcher(*stub_, 100);
  EXPECT_EQ(watcher.Next(), 1);
  EXPECT_EQ(watchers_.size(), 1u);

  watcher.context.TryCancel();

  EXPECT_TRUE(TickUntil([this] { return watchers_.size() == 0; }));
}

TEST_F(StatusWatchersTest, SaysThatItStops) {
  Watcher watcher(*stub_, 1000);
  EXPECT_EQ(watcher.Next(), 1);

  watchers_.Stop();

  EXPECT_EQ(watcher.Next(), -1);
  EXPECT_EQ(watcher.reader->Finish().error_code(), StatusCode::UNAVAILABLE);
  Watcher late(*stub_, 1000);
  EXPECT_EQ(late.Next(), -1);
  EXPECT_EQ(late.reader->Finish().error_code(), StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace slipstream
