#include "worker/client/shared_window.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/local/local_socket.h"
#include "common/local/shared_values.h"
#include "proto/shard.grpc.pb.h"
#include "tests/support/loopback.h"
#include "tests/support/message_text.h"

// The worker's end of shared memory, with a shard that is played by hand and does not behave.

namespace slipstream {
namespace {

constexpr size_t kPieceValues = 8;
constexpr size_t kPieceBytes = kPieceValues * sizeof(float);
constexpr size_t kPieces = 4;
constexpr absl::Duration kWait = absl::Seconds(20);

absl::Time LongFromNow() { return absl::Now() + kWait; }

/// Agrees on shared memory, hands its end of the local socket over, and does what it was told.
class FakeShard final : public v1::Shard::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::ExchangeReply, v1::PushChunk>;

  /// What becomes of the stream from then on.
  std::function<grpc::Status(Stream&)> then = [](Stream& stream) {
    v1::PushChunk chunk;
    stream.Read(&chunk);  // Until the worker ends it.
    return grpc::Status::OK;
  };
  std::promise<FileDescriptor> socket;

  grpc::Status Exchange(grpc::ServerContext*, Stream* stream) override {
    const std::string name = NewLocalName();
    const FileDescriptor listening = ListenLocally(name, LocalSocketKind::kMessages).value();
    v1::PushChunk asked;
    v1::ExchangeReply reply;
    stream->Read(&asked);
    reply.mutable_shared_memory()->set_socket(name);
    stream->Write(reply);
    stream->Read(&asked);
    reply.mutable_shared_memory()->clear_socket();
    FileDescriptor accepted = AcceptLocally(listening).value();
    memory_ = MakeSharedMemory(kPieces * kPieceBytes, SharedWriters::kEveryone).value();
    const LocalNote window = {LocalNote::Kind::kWindow, kPieces * kPieceBytes};
    EXPECT_TRUE(SendNote(accepted, window, &memory_.file).ok());
    stream->Write(reply);
    socket.set_value(std::move(accepted));
    return then(*stream);
  }

  /// Of the window, as the shard sees it.
  float ValueAt(size_t position) const {
    float value = 0;
    std::memcpy(&value, memory_.mapping.data() + position * sizeof(float), sizeof(value));
    return value;
  }

 private:
  SharedMemory memory_;
};

class SharedWindowTest : public testing::Test {
 protected:
  void Attach() {
    loopback_ = ServeOnLoopback(shard_);
    call_ = std::make_unique<RawCall>(loopback_.NewChannel(), "/slipstream.v1.Shard/Exchange",
                                      cancel_, LongFromNow());
    auto window = SharedWindow::Attach(*call_, kPieceBytes, LongFromNow(), cancel_);
    ASSERT_TRUE(window.ok()) << window.status();
    window_ = *std::move(window);
    socket_ = shard_.socket.get_future().get();
  }

  void Tell(const LocalNote& note) { ASSERT_TRUE(SendNote(socket_, note).ok()); }

  absl::Status Place(float value) {
    return window_->Place(std::vector<float>(kPieceValues, value), SoonOver()).status();
  }

  /// For what is not to succeed, or to without waiting.
  static absl::Time SoonOver() { return absl::Now() + absl::Milliseconds(20); }

  FakeShard shard_;
  Loopback loopback_;
  CancelSwitch cancel_;
  std::unique_ptr<RawCall> call_;
  std::unique_ptr<SharedWindow> window_;
  FileDescriptor socket_;  // The shard's.
};

TEST_F(SharedWindowTest, MessagesGoOverTheSocketBothWays) {
  Attach();
  ASSERT_TRUE(window_->Send(Message("a push")).ok());
  EXPECT_EQ(ReceiveNote(socket_, kWait).value().value().text, "a push");
  for (int i = 0; i < 3; ++i) {  // Late at first, soon from then on.
    ASSERT_TRUE(SendMessageNote(socket_, "an answer").ok());
    const auto answer = window_->Receive(LongFromNow());
    ASSERT_TRUE(answer.ok() && answer->has_value()) << answer.status();
    EXPECT_EQ(Text(**answer), "an answer");
  }
}

TEST_F(SharedWindowTest, AnAnswerCanComeOverTheStream) {
  shard_.then = [](FakeShard::Stream& stream) {
    v1::ExchangeReply reply;
    reply.set_offset(7);
    stream.Write(reply);
    v1::PushChunk chunk;
    stream.Read(&chunk);
    return grpc::Status::OK;
  };
  Attach();
  Tell({LocalNote::Kind::kOnStream, 0});
  const auto answer = window_->Receive(LongFromNow());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->has_value());
  grpc::ByteBuffer message;
  ASSERT_TRUE(call_->Read(message, LongFromNow()));
  v1::ExchangeReply reply;
  EXPECT_TRUE(reply.ParseFromString(Text(message)));
  EXPECT_EQ(reply.offset(), 7u);
}

TEST_F(SharedWindowTest, PlacesAreUsedAgainOnceTheyWereGivenBack) {
  Attach();
  for (size_t i = 0; i < kPieces; ++i) ASSERT_TRUE(Place(static_cast<float>(i)).ok());
  for (size_t i = 0; i < kPieces; ++i) {
    EXPECT_EQ(shard_.ValueAt(i * kPieceValues), static_cast<float>(i));
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(Place(5)));

  Tell({LocalNote::Kind::kTaken, 1});
  EXPECT_TRUE(Place(5).ok());
  EXPECT_EQ(shard_.ValueAt(0), 5.0f);
  EXPECT_TRUE(absl::IsDeadlineExceeded(Place(6)));

  window_->OnAnswer();
  for (size_t i = 0; i < kPieces; ++i) EXPECT_TRUE(Place(7).ok());
}

TEST_F(SharedWindowTest, WhatMakesNoSenseIsRefused) {
  Attach();
  ASSERT_TRUE(Place(1).ok());
  for (const LocalNote note :
       {LocalNote{LocalNote::Kind::kTaken, 2}, LocalNote{LocalNote::Kind::kBuffer, 1},
        LocalNote{LocalNote::Kind::kWindow, kPieces * kPieceBytes}}) {
    Tell(note);
    EXPECT_TRUE(absl::IsInternal(window_->Receive(LongFromNow()).status()));
  }
}

TEST_F(SharedWindowTest, AMessageIsNotTakenForWordOfAPlace) {
  Attach();
  for (size_t i = 0; i < kPieces; ++i) ASSERT_TRUE(Place(1).ok());
  ASSERT_TRUE(SendMessageNote(socket_, "early").ok());
  EXPECT_TRUE(absl::IsInternal(Place(2)));
}

TEST_F(SharedWindowTest, AWaitEndsWithTheShardsEndOfTheSocket) {
  Attach();
  std::thread shard([this] { socket_ = FileDescriptor(); });
  EXPECT_TRUE(absl::IsUnavailable(window_->Receive(LongFromNow()).status()));
  shard.join();
  EXPECT_TRUE(absl::IsUnavailable(window_->Send(Message("late"))));
}

TEST_F(SharedWindowTest, AWaitEndsWithTheStreamThoughTheSocketStays) {
  shard_.then = [](FakeShard::Stream&) {
    return grpc::Status(grpc::StatusCode::ABORTED, "enough of this");
  };
  Attach();
  EXPECT_TRUE(absl::IsUnavailable(window_->Receive(LongFromNow()).status()));
  EXPECT_EQ(call_->Finish(LongFromNow()).message(), "enough of this");
}

TEST_F(SharedWindowTest, AWaitEndsAtItsDeadlineAndByTheSwitch) {
  Attach();
  EXPECT_TRUE(absl::IsDeadlineExceeded(window_->Receive(SoonOver()).status()));
  std::thread other([this] { cancel_.Throw(); });
  EXPECT_TRUE(absl::IsCancelled(window_->Receive(LongFromNow()).status()));
  other.join();
}

}  // namespace
}  // namespace slipstream
