#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/local/local_notes.h"
#include "common/local/local_socket.h"
#include "common/local/shared_values.h"
#include "server/service/local_listener.h"
#include "tests/server/service/shard_service_fixture.h"

// Exchanges through shared memory with a worker that is played by hand, and does not behave.

namespace slipstream {
namespace {

constexpr size_t kHalf = kValues / 2;
constexpr uint64_t kWindowBytes = 4096;  // Holds all values.
constexpr absl::Duration kWait = absl::Seconds(20);

/// The worker's end of one stream.
class Peer {
 public:
  explicit Peer(v1::Shard::Stub& stub) {
    SetDeadline(context_);
    stream_ = stub.Exchange(&context_);
  }

  /// Over the local socket, once there is one.
  void Send(const v1::PushChunk& chunk) {
    const bool sent = socket_.is_open() ? SendMessageNote(socket_, chunk.SerializeAsString()).ok()
                                        : stream_->Write(chunk);
    EXPECT_TRUE(sent) << "the shard is gone";
  }

  v1::ExchangeReply Ask(const v1::PushChunk& chunk) {
    Send(chunk);
    v1::ExchangeReply reply;
    if (socket_.is_open()) {
      while (messages_.empty()) TakeNote();
      EXPECT_TRUE(reply.ParseFromString(messages_.front()));
      messages_.pop_front();
    } else if (!stream_->Read(&reply)) {
      ADD_FAILURE() << "the stream ended";
    }
    return reply;
  }

  v1::SharedMemoryReply Request(v1::SharedMemoryRequest::Step step) {
    return Ask(RequestOf(step)).shared_memory();
  }

  void Attach() {
    const v1::SharedMemoryReply opened = Request(v1::SharedMemoryRequest::OPEN);
    ASSERT_EQ(opened.refusal(), "");
    FileDescriptor socket = ConnectLocally(opened.socket(), LocalSocketKind::kMessages).value();
    ASSERT_EQ(Request(v1::SharedMemoryRequest::ATTACH).refusal(), "");
    socket_ = std::move(socket);
    const ReceivedNote note = ReceiveNote(socket_, kWait).value().value();
    ASSERT_EQ(note.note.kind, LocalNote::Kind::kWindow);
    window_ = MapSharedMemory(note.file, note.note.number, SharedWriters::kEveryone).value();
    file_ = FileDescriptor(dup(note.file.get()));
  }

  /// Writes to the window what a chunk then refers to.
  v1::PushChunk Chunk(uint64_t offset, const std::vector<float>& values, uint64_t begin = 0) {
    std::memcpy(window_.data() + begin, values.data(), values.size() * sizeof(float));
    v1::PushChunk chunk;
    chunk.set_offset(offset);
    chunk.mutable_shared()->set_begin(begin);
    chunk.mutable_shared()->set_count(values.size());
    return chunk;
  }

  /// Waits until the shard says that it has read all pieces so far.
  void AwaitTaken(uint64_t pieces) {
    while (taken_ < pieces) TakeNote();
  }

  /// What lies at an answer's place; keeps the buffer mapped.
  std::vector<float> Read(const v1::ExchangeReply& reply) {
    const uint64_t number = reply.shared().buffer();
    while (!buffers_.contains(number)) TakeNote();
    const float* const values = SharedValuesLayout::Values(buffers_[number]);
    return {values, values + kValues};
  }
  uint64_t Generation(const v1::ExchangeReply& reply) {
    return SharedValuesLayout::Generation(buffers_.at(reply.shared().buffer()));
  }

  void Release() { Send(RequestOf(v1::SharedMemoryRequest::RELEASE)); }

  /// True if the shard closes the local socket, without another message.
  bool SeesTheEnd() {
    for (;;) {
      const auto note = ReceiveNote(socket_, kWait);
      if (!note.ok()) return absl::IsUnavailable(note.status());
      if (!note->has_value() || (*note)->note.kind == LocalNote::Kind::kMessage) return false;
    }
  }

  void Cancel() { context_.TryCancel(); }

  grpc::Status End() {
    stream_->WritesDone();
    return stream_->Finish();
  }

  grpc::ClientReaderWriter<v1::PushChunk, v1::ExchangeReply>& stream() { return *stream_; }
  std::byte* window() { return window_.data(); }
  const FileDescriptor& file() const { return file_; }
  FileDescriptor& socket() { return socket_; }

 private:
  static v1::PushChunk RequestOf(v1::SharedMemoryRequest::Step step) {
    v1::PushChunk chunk;
    chunk.mutable_shared_memory()->set_step(step);
    chunk.mutable_shared_memory()->set_window_bytes(kWindowBytes);
    return chunk;
  }

  void TakeNote() {
    const ReceivedNote note = ReceiveNote(socket_, kWait).value().value();
    if (note.note.kind == LocalNote::Kind::kTaken) taken_ = note.note.number;
    if (note.note.kind == LocalNote::Kind::kMessage) messages_.push_back(note.text);
    if (note.note.kind != LocalNote::Kind::kBuffer) return;
    buffers_[note.note.number] =
        MapSharedMemory(note.file, SharedValuesLayout::Bytes(kValues), SharedWriters::kMakerAlone)
            .value();
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::PushChunk, v1::ExchangeReply>> stream_;
  FileDescriptor socket_;
  FileDescriptor file_;
  SharedMapping window_;
  uint64_t taken_ = 0;
  std::deque<std::string> messages_;
  std::map<uint64_t, SharedMapping> buffers_;
};

class SharedExchangeTest : public ShardServiceTest {
 protected:
  /// Reaches the shard through a local socket from now on.
  void Start(ConsistencySpec consistency, uint32_t members) {
    ShardServiceTest::Start(consistency, members);
    const std::string name = NewLocalName();
    listener_ = LocalListener::Start(name, *loopback_.server).value();
    stub_ = v1::Shard::NewStub(
        grpc::CreateInsecureChannelFromFd("localhost", ConnectLocally(name).value().Release()));
  }

  void TearDown() override {
    listener_.reset();
    ShardServiceTest::TearDown();
  }

  v1::PushChunk WithHeader(v1::PushChunk chunk, uint64_t sequence, uint64_t base) const {
    *chunk.mutable_header() = Header(0, sequence, base);
    chunk.mutable_header()->set_pull(true);
    return chunk;
  }

  /// Updates by another worker, which take and give back buffers.
  void UpdateByAnother(int times) {
    for (int i = 0; i < times; ++i) {
      const v1::PushReply reply = Push(Header(1, ++others_, 0), std::vector<float>(kValues, 1.0f));
      ASSERT_EQ(reply.outcome(), v1::APPLIED);
    }
  }

  uint64_t others_ = 0;

 private:
  std::unique_ptr<LocalListener> listener_;
};

const std::vector<float> kOnes(kValues, 1.0f);

TEST_F(SharedExchangeTest, UpdatesAsMessagesDoAndAnswersWithABuffer) {
  Start(kAsync, 1);
  Peer peer(*stub_);
  peer.Attach();

  const v1::ExchangeReply reply = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 1, 0));

  EXPECT_EQ(reply.push().outcome(), v1::APPLIED);
  EXPECT_EQ(reply.header().version(), 1u);
  EXPECT_EQ(reply.values(), "");
  ASSERT_TRUE(reply.has_shared());
  EXPECT_EQ(peer.Read(reply), std::vector<float>(kValues, -1.0f));
  EXPECT_EQ(peer.Generation(reply), reply.shared().generation());
  EXPECT_EQ(Pull(1).values, std::vector<float>(kValues, -1.0f));
  EXPECT_TRUE(peer.End().ok());
}

TEST_F(SharedExchangeTest, AVersionStaysUntilItIsReleased) {
  Start(kAsync, 2);
  Peer peer(*stub_);
  peer.Attach();
  const v1::ExchangeReply reply = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 1, 0));
  peer.Read(reply);

  UpdateByAnother(10);
  EXPECT_EQ(peer.Generation(reply), reply.shared().generation());
  EXPECT_EQ(peer.Read(reply), std::vector<float>(kValues, -1.0f));

  peer.Release();
  // Behind the release, so that it was heard.
  const v1::ExchangeReply next = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 2, 1));
  EXPECT_EQ(next.push().outcome(), v1::APPLIED);
  UpdateByAnother(10);
  EXPECT_NE(peer.Generation(reply), reply.shared().generation());
}

TEST_F(SharedExchangeTest, AVersionIsTakenFromWhoNeverReleasesItWhenItsTimeIsUp) {
  Start(kAsync, 2);
  Peer peer(*stub_);
  peer.Attach();
  const v1::ExchangeReply reply = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 1, 0));
  peer.Read(reply);

  milliseconds_ += absl::ToInt64Milliseconds(RunSpec().cluster.lease) + 1;
  service_->ShardReport();
  UpdateByAnother(10);

  EXPECT_NE(peer.Generation(reply), reply.shared().generation());
}

TEST_F(SharedExchangeTest, AVersionIsGivenBackWithTheStream) {
  Start(kAsync, 2);
  Peer peer(*stub_);
  peer.Attach();
  const v1::ExchangeReply reply = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 1, 0));
  peer.Read(reply);

  EXPECT_TRUE(peer.End().ok());

  // The server is done with the stream a moment after the worker is. The buffers that came back
  // last are used first, so another worker keeps some meanwhile.
  Peer other(*stub_);
  other.Attach();
  const absl::Time deadline = absl::Now() + kWait;
  while (peer.Generation(reply) == reply.shared().generation() && absl::Now() < deadline) {
    v1::PushChunk chunk = other.Chunk(0, kOnes);
    *chunk.mutable_header() = Header(1, ++others_, 0);
    chunk.mutable_header()->set_pull(true);
    ASSERT_EQ(other.Ask(chunk).push().outcome(), v1::APPLIED);
    UpdateByAnother(2);
    other.Release();
  }
  EXPECT_NE(peer.Generation(reply), reply.shared().generation());
}

TEST_F(SharedExchangeTest, WhatIsWrittenAfterItWasReadHasNoEffect) {
  Start(kAsync, 1);
  Peer peer(*stub_);
  peer.Attach();
  const std::vector<float> half(kHalf, 1.0f);
  peer.Send(WithHeader(peer.Chunk(kHalf, half), 1, 0));
  peer.AwaitTaken(1);

  std::memset(peer.window(), 0xff, kHalf * sizeof(float));  // NaN.

  const v1::ExchangeReply reply = peer.Ask(peer.Chunk(0, half, kHalf * sizeof(float)));
  EXPECT_EQ(reply.push().outcome(), v1::APPLIED);
  EXPECT_EQ(peer.Read(reply), std::vector<float>(kValues, -1.0f));
}

TEST_F(SharedExchangeTest, WhatIsWrittenWhileItIsReadIsCheckedAsItWasTaken) {
  Start(kAsync, 1);
  Peer peer(*stub_);
  peer.Attach();
  std::atomic<bool> ends = false;
  std::thread vandal([&] {
    auto* const words = reinterpret_cast<std::atomic<float>*>(peer.window());
    for (size_t i = 0; !ends; i = (i + 1) % kValues) {
      words[i] = std::numeric_limits<float>::quiet_NaN();
      words[i] = 1.0f;
    }
  });
  uint64_t applied = 0;
  for (int i = 0; i < 200; ++i) {
    v1::PushChunk chunk;
    chunk.mutable_shared()->set_count(kValues);
    const v1::ExchangeReply reply = peer.Ask(WithHeader(chunk, applied + 1, applied));
    if (reply.push().outcome() == v1::APPLIED) {
      ++applied;
    } else {
      EXPECT_EQ(reply.push().outcome(), v1::NONFINITE);
    }
  }
  ends = true;
  vandal.join();
  for (const float weight : Pull().values) EXPECT_TRUE(std::isfinite(weight));
}

TEST_F(SharedExchangeTest, TheWindowCannotBeCutShort) {
  Start(kAsync, 1);
  Peer peer(*stub_);
  peer.Attach();

  EXPECT_EQ(ftruncate(peer.file().get(), 0), -1);
  EXPECT_EQ(errno, EPERM);

  const v1::ExchangeReply reply = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 1, 0));
  EXPECT_EQ(reply.push().outcome(), v1::APPLIED);
}

TEST_F(SharedExchangeTest, PlacesOutsideTheWindowAreRefusedWithoutEffect) {
  Start(kAsync, 1);
  struct Place {
    uint64_t begin, count;
  };
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  for (const Place place : {Place{kWindowBytes, 1}, Place{0, kWindowBytes / 4 + 1}, Place{2, 1},
                            Place{kMost - 3, 2}, Place{0, kMost}, Place{4, kMost / 4}}) {
    SCOPED_TRACE(std::to_string(place.begin) + ", " + std::to_string(place.count));
    Peer peer(*stub_);
    peer.Attach();
    v1::PushChunk chunk;
    chunk.mutable_shared()->set_begin(place.begin);
    chunk.mutable_shared()->set_count(place.count);
    const v1::ExchangeReply reply = peer.Ask(WithHeader(chunk, 1, 0));
    EXPECT_EQ(reply.push().outcome(), v1::LENGTH_MISMATCH);
    EXPECT_NE(reply.push().message().find("not in the window"), std::string::npos);
    EXPECT_EQ(peer.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_EQ(Pull().version, 0u);
  EXPECT_EQ(service_->ShardReport().bytes_queued(), 0u);
}

TEST_F(SharedExchangeTest, StepsOutOfOrderAreRefusedByName) {
  Start(kAsync, 1);
  {
    Peer peer(*stub_);
    EXPECT_NE(peer.Request(v1::SharedMemoryRequest::ATTACH).refusal(), "");
    EXPECT_EQ(peer.Request(v1::SharedMemoryRequest::OPEN).refusal(), "");
    EXPECT_NE(peer.Request(v1::SharedMemoryRequest::OPEN).refusal(), "");
    EXPECT_NE(peer.Request(v1::SharedMemoryRequest::ATTACH).refusal(), "") << "nobody connected";
    // The stream is as good as before.
    v1::PushChunk chunk = WithHeader({}, 1, 0);
    chunk.set_values(Bytes(kOnes));
    EXPECT_EQ(peer.Ask(chunk).push().outcome(), v1::APPLIED);
  }
  const auto ends_the_stream = [&](Peer& peer, const v1::PushChunk& chunk, const char* why) {
    EXPECT_NE(peer.Ask(chunk).push().message().find(why), std::string::npos) << why;
    EXPECT_EQ(peer.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << why;
  };
  v1::PushChunk shared;
  shared.mutable_shared()->set_count(1);
  Peer unattached(*stub_);
  ends_the_stream(unattached, WithHeader(shared, 2, 1), "no shared memory was agreed on");

  Peer interrupting(*stub_);
  interrupting.Attach();
  const std::vector<float> half(kHalf, 1.0f);
  interrupting.Send(WithHeader(interrupting.Chunk(0, half), 2, 1));
  v1::PushChunk request;
  request.mutable_shared_memory()->set_step(v1::SharedMemoryRequest::OPEN);
  ends_the_stream(interrupting, request, "before the push in front of it was complete");

  EXPECT_EQ(Pull().version, 1u);
  EXPECT_EQ(service_->ShardReport().bytes_queued(), 0u);
}

TEST_F(SharedExchangeTest, AnAnswerThatCannotBeMappedComesOverTheStream) {
  Start({ConsistencySpec::Policy::kSoftsync, 1}, 2);
  Peer peer(*stub_);
  peer.Attach();
  // It closes no round, so version 0 answers it, which is of before anyone shared memory.
  peer.Send(WithHeader(peer.Chunk(0, kOnes), 1, 0));
  v1::ExchangeReply reply;
  ASSERT_TRUE(peer.stream().Read(&reply));
  EXPECT_FALSE(reply.has_shared());
  EXPECT_EQ(reply.header().count(), kValues);
  size_t values = Floats(reply.values()).size();
  while (values < kValues && peer.stream().Read(&reply)) values += Floats(reply.values()).size();
  EXPECT_EQ(values, kValues);

  // The next one does not.
  const v1::ExchangeReply next = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 2, 0));
  EXPECT_EQ(next.push().outcome(), v1::APPLIED);
  EXPECT_EQ(peer.Read(next), std::vector<float>(kValues, -1.0f));
}

TEST_F(SharedExchangeTest, WhoeverSpeaksOnTheStreamOnceAttachedIsEnded) {
  Start(kAsync, 1);
  Peer peer(*stub_);
  peer.Attach();
  ASSERT_TRUE(peer.stream().Write(WithHeader(peer.Chunk(0, kOnes), 1, 0)));
  EXPECT_TRUE(peer.SeesTheEnd());
  EXPECT_EQ(peer.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Pull().version, 0u);
}

TEST_F(SharedExchangeTest, APushWhoseSocketOrStreamEndsHasNoEffect) {
  Start(kAsync, 1);
  const std::vector<float> half(kHalf, 1.0f);
  for (const bool ends_stream : {false, true}) {
    SCOPED_TRACE(ends_stream);
    Peer peer(*stub_);
    peer.Attach();
    peer.Send(WithHeader(peer.Chunk(0, half), 1, 0));
    peer.AwaitTaken(1);
    if (ends_stream) {
      peer.Cancel();
      EXPECT_TRUE(peer.SeesTheEnd());
    } else {
      peer.socket() = FileDescriptor();
      v1::ExchangeReply reply;
      EXPECT_FALSE(peer.stream().Read(&reply));
    }
    EXPECT_EQ(peer.End().error_code(), grpc::StatusCode::CANCELLED);
  }
  {
    SCOPED_TRACE("half closed");
    Peer peer(*stub_);
    peer.Attach();
    peer.Send(WithHeader(peer.Chunk(0, half), 1, 0));
    peer.AwaitTaken(1);
    EXPECT_TRUE(peer.End().ok());
  }
  EXPECT_EQ(Pull().version, 0u);
  EXPECT_EQ(service_->ShardReport().bytes_queued(), 0u);
}

TEST_F(SharedExchangeTest, WhatIsNoMessageEndsTheStream) {
  Start(kAsync, 1);
  for (const LocalNote note :
       {LocalNote{LocalNote::Kind::kTaken, 1}, LocalNote{LocalNote::Kind::kMessage, 7}}) {
    Peer peer(*stub_);
    peer.Attach();
    ASSERT_TRUE(SendNote(peer.socket(), note).ok());
    EXPECT_TRUE(peer.SeesTheEnd());
    EXPECT_EQ(peer.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  Peer peer(*stub_);
  peer.Attach();
  ASSERT_TRUE(SendMessageNote(peer.socket(), "no chunk").ok());
  EXPECT_TRUE(peer.SeesTheEnd());
  EXPECT_EQ(peer.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(SharedExchangeTest, WhoComesOverTheNetworkGetsNone) {
  Start(kAsync, 1);
  const std::unique_ptr<v1::Shard::Stub> remote = v1::Shard::NewStub(loopback_.NewChannel());
  Peer peer(*remote);
  const v1::SharedMemoryReply reply = peer.Request(v1::SharedMemoryRequest::OPEN);
  EXPECT_EQ(reply.socket(), "");
  EXPECT_NE(reply.refusal().find("over the network"), std::string::npos);
}

TEST_F(SharedExchangeTest, APushCallHasNoSharedMemory) {
  Start(kAsync, 1);
  v1::PushChunk chunk;
  *chunk.mutable_header() = Header(0, 1, 0);
  chunk.mutable_shared()->set_count(kValues);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::PushReply reply;
  auto writer = stub_->Push(&context, &reply);
  writer->Write(chunk);
  writer->WritesDone();
  EXPECT_TRUE(!writer->Finish().ok() || reply.outcome() == v1::LENGTH_MISMATCH);
  EXPECT_EQ(Pull().version, 0u);
}

}  // namespace
}  // namespace slipstream
