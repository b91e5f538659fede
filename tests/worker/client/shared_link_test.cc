#include "worker/client/shared_link.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/local/local_socket.h"
#include "common/local/shared_arena.h"
#include "common/process/steady_time.h"
#include "proto/shard.grpc.pb.h"
#include "tests/support/loopback.h"
#include "tests/support/message_text.h"

// Tests of the worker's end of shared memory, with a misbehaving shard that the test plays by hand.

namespace slipstream {
namespace {

constexpr size_t kChunkValues = 8;
constexpr size_t kUnreadMax = 3;
constexpr absl::Duration kWait = absl::Seconds(20);

absl::Time LongFromNow() { return SteadyNow() + kWait; }

/// Agrees on shared memory, gives its end of the local socket to the test, and then runs `then`.
class FakeShard final : public v1::Shard::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::ExchangeReply, v1::PushChunk>;

  /// Runs once shared memory is set up, and returns the status of the stream.
  std::function<grpc::Status(Stream&)> then = [](Stream& stream) {
    v1::PushChunk chunk;
    stream.Read(&chunk);  // Returns when the worker ends the stream.
    return grpc::Status::OK;
  };
  std::promise<FileDescriptor> socket;
  FileDescriptor arena;
  std::string refusal;

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
    reply.mutable_shared_memory()->set_refusal(refusal);
    FileDescriptor accepted = AcceptLocally(listening).value();
    ReceivedNote note = ReceiveNote(accepted, kWait).value().value();
    EXPECT_EQ(note.note.kind, LocalNote::Kind::kArena);
    arena = std::move(note.file);
    stream->Write(reply);
    socket.set_value(std::move(accepted));
    return then(*stream);
  }
};

class SharedLinkTest : public testing::Test {
 protected:
  void Attach() {
    loopback_ = ServeOnLoopback(shard_);
    call_ = std::make_unique<RawCall>(loopback_.NewChannel(), "/slipstream.v1.Shard/Exchange",
                                      &cancel_, LongFromNow());
    auto link = SharedLink::Attach(*call_, arena_, LongFromNow(), cancel_);
    ASSERT_TRUE(link.ok()) << link.status();
    link_ = *std::move(link);
    socket_ = shard_.socket.get_future().get();
  }

  void Tell(const LocalNote& note) { ASSERT_TRUE(SendNote(socket_, note).ok()); }

  absl::StatusOr<SharedValues> Place(size_t chunk) {
    return link_->Place(arena_.part(0).subspan(chunk * kChunkValues, kChunkValues), SoonOver());
  }
  absl::Status Place() { return Place(0).status(); }

  /// Returns a deadline for calls that must fail, or succeed without waiting.
  static absl::Time SoonOver() { return SteadyNow() + absl::Milliseconds(20); }

  const SharedArena arena_ = SharedArena::Make(1, 10 * kChunkValues).value();
  FakeShard shard_;
  Loopback loopback_;
  CancelSwitch cancel_;
  std::unique_ptr<RawCall> call_;
  std::unique_ptr<SharedLink> link_;
  FileDescriptor socket_;  // The shard's end.
};

TEST_F(SharedLinkTest, MessagesGoOverTheSocketBothWays) {
  Attach();
  ASSERT_TRUE(link_->Send(Message("a push")).ok());
  EXPECT_EQ(ReceiveNote(socket_, kWait).value().value().text, "a push");
  for (int i = 0; i < 3; ++i) {  // The first read waits long, later ones poll.
    ASSERT_TRUE(SendMessageNote(socket_, "an answer").ok());
    const auto answer = link_->Receive(LongFromNow());
    ASSERT_TRUE(answer.ok() && answer->has_value()) << answer.status();
    EXPECT_EQ(Text(**answer), "an answer");
  }
}

TEST_F(SharedLinkTest, AnAnswerCanComeOverTheStream) {
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
  const auto answer = link_->Receive(LongFromNow());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->has_value());
  grpc::ByteBuffer message;
  ASSERT_TRUE(call_->Read(message, LongFromNow()));
  v1::ExchangeReply reply;
  EXPECT_TRUE(reply.ParseFromString(Text(message)));
  EXPECT_EQ(reply.offset(), 7u);
}

TEST_F(SharedLinkTest, TheShardHasTheArenaBeforePlacesInIt) {
  Attach();
  const SharedValues placed = Place(5).value();
  EXPECT_EQ(placed.count, kChunkValues);
  arena_.part(0)[5 * kChunkValues] = 1.5f;

  float seen = 0;
  ForeignArena::Open(shard_.arena)->Copy(placed.begin, std::as_writable_bytes(std::span(&seen, 1)));
  EXPECT_EQ(seen, 1.5f);
}

TEST_F(SharedLinkTest, AShardThatCannotTakeTheArenaSaysWhyAndTheStreamGoesOn) {
  shard_.refusal = "not today";
  loopback_ = ServeOnLoopback(shard_);
  RawCall call(loopback_.NewChannel(), "/slipstream.v1.Shard/Exchange", &cancel_, LongFromNow());
  const auto link = SharedLink::Attach(call, arena_, LongFromNow(), cancel_);
  EXPECT_TRUE(absl::IsFailedPrecondition(link.status())) << link.status();
  EXPECT_EQ(link.status().message(), "not today");
  EXPECT_TRUE(call.Write(Message("a push"), RawCall::Next::kReads, LongFromNow()));
}

TEST_F(SharedLinkTest, OnlyAFewChunksAreUnreadAtOnce) {
  Attach();
  for (size_t i = 0; i < kUnreadMax; ++i) ASSERT_TRUE(Place().ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(Place()));

  Tell({LocalNote::Kind::kTaken, 1});
  EXPECT_TRUE(Place().ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(Place()));

  link_->OnAnswer();
  for (size_t i = 0; i < kUnreadMax; ++i) EXPECT_TRUE(Place().ok());
}

TEST_F(SharedLinkTest, WhatMakesNoSenseIsRefused) {
  Attach();
  ASSERT_TRUE(Place().ok());
  for (const LocalNote note :
       {LocalNote{LocalNote::Kind::kTaken, 2}, LocalNote{LocalNote::Kind::kBuffer, 1},
        LocalNote{LocalNote::Kind::kArena, 0}}) {
    Tell(note);
    EXPECT_TRUE(absl::IsInternal(link_->Receive(LongFromNow()).status()));
  }
}

TEST_F(SharedLinkTest, AMessageIsNotTakenForWordOfAChunk) {
  Attach();
  for (size_t i = 0; i < kUnreadMax; ++i) ASSERT_TRUE(Place().ok());
  ASSERT_TRUE(SendMessageNote(socket_, "early").ok());
  EXPECT_TRUE(absl::IsInternal(Place()));
}

TEST_F(SharedLinkTest, AWaitEndsWithTheShardsEndOfTheSocket) {
  Attach();
  std::thread shard([this] { socket_ = FileDescriptor(); });
  EXPECT_TRUE(absl::IsUnavailable(link_->Receive(LongFromNow()).status()));
  shard.join();
  EXPECT_TRUE(absl::IsUnavailable(link_->Send(Message("late"))));
}

TEST_F(SharedLinkTest, AWaitEndsWithTheStreamThoughTheSocketStays) {
  shard_.then = [](FakeShard::Stream&) {
    return grpc::Status(grpc::StatusCode::ABORTED, "enough of this");
  };
  Attach();
  EXPECT_TRUE(absl::IsUnavailable(link_->Receive(LongFromNow()).status()));
  EXPECT_EQ(call_->Finish(LongFromNow()).message(), "enough of this");
}

TEST_F(SharedLinkTest, AWaitEndsAtItsDeadlineAndByTheSwitch) {
  Attach();
  EXPECT_TRUE(absl::IsDeadlineExceeded(link_->Receive(SoonOver()).status()));
  std::thread other([this] { cancel_.Throw(); });
  EXPECT_TRUE(absl::IsCancelled(link_->Receive(LongFromNow()).status()));
  other.join();
}

}  // namespace
}  // namespace slipstream
