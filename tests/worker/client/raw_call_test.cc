#include "worker/client/raw_call.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "common/process/steady_time.h"
#include "tests/support/loopback.h"
#include "tests/support/message_text.h"
#include "worker/client/cancel_switch.h"

namespace slipstream {
namespace {

/// Sends each message back, but "late" only after a while, and "never" not at all.
class Echo final : public grpc::ServerGenericBidiReactor {
 public:
  Echo() { StartRead(&message_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    const std::string text = Text(message_);
    if (text == "never") return StartRead(&message_);
    if (text == "late") std::this_thread::sleep_for(std::chrono::milliseconds(20));
    StartWrite(&message_);
  }
  void OnWriteDone(bool) override { StartRead(&message_); }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

class EchoService final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Echo();
  }
};

class RawCallTest : public testing::Test {
 protected:
  RawCallTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &loopback_.port);
    builder.RegisterCallbackGenericService(&service_);
    loopback_.server = builder.BuildAndStart();
    call_ =
        std::make_unique<RawCall>(loopback_.NewChannel(), "/echo/Echo", &cancel_, LongFromNow());
  }

  static absl::Time LongFromNow() { return SteadyNow() + absl::Seconds(20); }

  void Ask(const std::string& text) {
    ASSERT_TRUE(call_->Write(Message(text), RawCall::Next::kReads, LongFromNow()));
  }

  std::string Read() {
    grpc::ByteBuffer message;
    return call_->Read(message, LongFromNow()) ? Text(message) : "nothing";
  }

  /// Asks often and is answered soon, so that the next read expects the same and polls.
  void AnswersComeSoon() {
    for (int i = 0; i < 50; ++i) {
      Ask(std::to_string(i));
      ASSERT_EQ(Read(), std::to_string(i));
    }
  }

  EchoService service_;
  Loopback loopback_;
  CancelSwitch cancel_;
  std::unique_ptr<RawCall> call_;
};

TEST_F(RawCallTest, ReadsWhatComesSoonAndWhatComesLate) {
  AnswersComeSoon();
  Ask("late");
  EXPECT_EQ(Read(), "late");
  Ask("soon");
  EXPECT_EQ(Read(), "soon");
  call_->WritesDone(LongFromNow());
  EXPECT_EQ(Read(), "nothing");
  EXPECT_TRUE(call_->Finish(LongFromNow()).ok());
}

TEST_F(RawCallTest, AReadEndsAtItsDeadlineThoughAllBeforeCameSoon) {
  AnswersComeSoon();
  Ask("never");
  grpc::ByteBuffer message;
  EXPECT_FALSE(call_->Read(message, SteadyNow() + absl::Milliseconds(5)));
  EXPECT_EQ(call_->Finish(LongFromNow()).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(RawCallTest, AReadWhoseDeadlineIsOverEndsAtOnce) {
  AnswersComeSoon();
  Ask("never");
  grpc::ByteBuffer message;
  EXPECT_FALSE(call_->Read(message, absl::UnixEpoch()));
  EXPECT_EQ(call_->Finish(LongFromNow()).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(RawCallTest, AReadThatBringsNothingInTimeGoesOnWhileMoreIsAsked) {
  grpc::ByteBuffer message;
  Ask("never");
  EXPECT_EQ(call_->ReadBy(message, absl::UnixEpoch()), RawCall::Came::kNothingYet);
  EXPECT_EQ(call_->ReadBy(message, SteadyNow() + absl::Milliseconds(5)),
            RawCall::Came::kNothingYet);
  Ask("now");
  EXPECT_EQ(call_->ReadBy(message, LongFromNow()), RawCall::Came::kMessage);
  EXPECT_EQ(Text(message), "now");
  call_->WritesDone(LongFromNow());
  EXPECT_EQ(call_->ReadBy(message, LongFromNow()), RawCall::Came::kEnd);
  EXPECT_TRUE(call_->Finish(LongFromNow()).ok());
}

TEST_F(RawCallTest, TheSwitchEndsAReadThatWaits) {
  AnswersComeSoon();
  Ask("never");
  std::thread other([this] { cancel_.Throw(); });
  EXPECT_EQ(Read(), "nothing");
  other.join();
  EXPECT_EQ(call_->Finish(LongFromNow()).code(), absl::StatusCode::kCancelled);
}

/// Waits until a message has been read ahead, at most for a long time.
bool AwaitReadAhead(RawCall& call) {
  const absl::Time end = SteadyNow() + absl::Seconds(20);
  while (!call.HasReadAhead() && SteadyNow() < end) std::this_thread::yield();
  return call.HasReadAhead();
}

TEST_F(RawCallTest, WhatIsReadAheadIsReadNext) {
  Ask("early");
  call_->ReadAhead();
  ASSERT_TRUE(AwaitReadAhead(*call_));
  EXPECT_EQ(Read(), "early");
  EXPECT_FALSE(call_->HasReadAhead());

  Ask("never");
  call_->ReadAhead();
  EXPECT_FALSE(call_->HasReadAhead());
  Ask("late");
  EXPECT_EQ(Read(), "late");

  Ask("polled for");
  call_->ReadAhead();
  for (int i = 0; i < 20; ++i) call_->Poll(absl::Milliseconds(1));
  EXPECT_EQ(Read(), "polled for");
}

TEST_F(RawCallTest, ReadingAheadShowsTheEnd) {
  call_->ReadAhead();
  EXPECT_FALSE(call_->HasReadAhead());
  loopback_.server->Shutdown(std::chrono::system_clock::now());
  ASSERT_TRUE(AwaitReadAhead(*call_));
  EXPECT_FALSE(call_->Finish(LongFromNow()).ok());
}

TEST_F(RawCallTest, ACallThatReadsAheadCanBeDropped) {
  call_->ReadAhead();
  call_.reset();
  call_ = std::make_unique<RawCall>(loopback_.NewChannel(), "/echo/Echo", &cancel_, LongFromNow());
  Ask("the next call");
  EXPECT_EQ(Read(), "the next call");
}

}  // namespace
}  // namespace slipstream
