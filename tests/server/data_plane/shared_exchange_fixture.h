#ifndef SLIPSTREAM_TESTS_SERVER_DATA_PLANE_SHARED_EXCHANGE_FIXTURE_H_
#define SLIPSTREAM_TESTS_SERVER_DATA_PLANE_SHARED_EXCHANGE_FIXTURE_H_

#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/local/local_notes.h"
#include "common/local/local_socket.h"
#include "common/local/shared_arena.h"
#include "common/local/shared_values.h"
#include "server/listen/local_listener.h"
#include "tests/server/data_plane/shard_service_fixture.h"

// Exchanges through shared memory with a worker that the test plays by hand.

namespace slipstream {

inline constexpr size_t kHalf = kValues / 2;
inline constexpr size_t kArenaValues = 1024;  // More than the model has.
inline constexpr uint64_t kArenaBytes = kArenaValues * sizeof(float);
inline constexpr absl::Duration kWait = absl::Seconds(20);
inline const std::vector<float> kOnes(kValues, 1.0f);

/// The worker's end of one exchange stream.
class Peer {
 public:
  explicit Peer(v1::Shard::Stub& stub, size_t arena_values = kArenaValues)
      : arena_(SharedArena::Make(1, arena_values).value()) {
    SetDeadline(context_);
    stream_ = stub.Exchange(&context_);
  }

  /// Sends over the local socket, once it is connected, and else over the stream.
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

  void Attach() { ASSERT_EQ(TryToAttach(&arena_.file()), ""); }

  /// Returns why the shard refused; empty if it did not.
  std::string TryToAttach(const FileDescriptor* arena) {
    const v1::SharedMemoryReply opened = Request(v1::SharedMemoryRequest::OPEN);
    EXPECT_EQ(opened.refusal(), "");
    FileDescriptor socket = ConnectLocally(opened.socket(), LocalSocketKind::kMessages).value();
    EXPECT_TRUE(SendNote(socket, {LocalNote::Kind::kArena, 0}, arena).ok());
    std::string refusal = Request(v1::SharedMemoryRequest::ATTACH).refusal();
    if (refusal.empty()) socket_ = std::move(socket);
    return refusal;
  }

  /// Writes the values to the arena. Returns a chunk that refers to them.
  v1::PushChunk Chunk(uint64_t offset, const std::vector<float>& values, uint64_t begin = 0) {
    std::memcpy(arena() + begin, values.data(), values.size() * sizeof(float));
    v1::PushChunk chunk;
    chunk.set_offset(offset);
    chunk.mutable_shared()->set_begin(begin);
    chunk.mutable_shared()->set_count(values.size());
    return chunk;
  }

  /// Waits until the shard says that it has read this many chunks.
  void AwaitTaken(uint64_t chunks) {
    while (taken_ < chunks) TakeNote();
  }

  /// Returns the values that an answer refers to. Keeps the buffer mapped.
  std::vector<float> Read(const v1::ExchangeReply& reply) {
    const uint64_t number = reply.shared().buffer();
    while (!buffers_.contains(number)) TakeNote();
    const float* const values = SharedValuesLayout::Values(buffers_[number]);
    return {values, values + kValues};
  }
  uint64_t Filling(const v1::ExchangeReply& reply) {
    return SharedValuesLayout::Filling(buffers_.at(reply.shared().buffer()));
  }

  void Release() { Send(RequestOf(v1::SharedMemoryRequest::RELEASE)); }

  /// Returns true if the shard closes the local socket without another message.
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
  std::byte* arena() { return std::as_writable_bytes(arena_.part(0)).data(); }
  FileDescriptor& socket() { return socket_; }

 private:
  static v1::PushChunk RequestOf(v1::SharedMemoryRequest::Step step) {
    v1::PushChunk chunk;
    chunk.mutable_shared_memory()->set_step(step);
    return chunk;
  }

  void TakeNote() {
    const ReceivedNote note = ReceiveNote(socket_, kWait).value().value();
    if (note.note.kind == LocalNote::Kind::kTaken) taken_ = note.note.number;
    if (note.note.kind == LocalNote::Kind::kMessage) messages_.push_back(note.text);
    if (note.note.kind != LocalNote::Kind::kBuffer) return;
    buffers_[note.note.number] =
        MapSharedMemory(note.file, SharedValuesLayout::Bytes(kValues)).value();
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::PushChunk, v1::ExchangeReply>> stream_;
  FileDescriptor socket_;
  const SharedArena arena_;
  uint64_t taken_ = 0;
  std::deque<std::string> messages_;
  std::map<uint64_t, SharedMapping> buffers_;
};

class SharedExchangeTest : public ShardServiceTest {
 protected:
  /// Starts a shard that is reached through a local socket.
  void Start(ConsistencySpec consistency, uint32_t members) {
    ShardServiceTest::Start(consistency, members);
    listener_ = LocalListener::Start(local_name_, *loopback_.server).value();
    stub_ = v1::Shard::NewStub(grpc::CreateInsecureChannelFromFd(
        "localhost", ConnectLocally(local_name_).value().Release()));
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

  /// Makes updates by another worker, which take and return buffers.
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

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_DATA_PLANE_SHARED_EXCHANGE_FIXTURE_H_
