#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/data_plane/shared_exchange_fixture.h"

// Tests that a misbehaving worker harms nobody through shared memory.

namespace slipstream {
namespace {

using SharedExchangeAbuseTest = SharedExchangeTest;

TEST_F(SharedExchangeAbuseTest, AVersionIsTakenFromWhoNeverReleasesItWhenItsTimeIsUp) {
  Start(kAsync, 2);
  Peer peer(*stub_);
  peer.Attach();
  const v1::ExchangeReply reply = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 1, 0));
  peer.Read(reply);

  milliseconds_ += absl::ToInt64Milliseconds(RunSpec().cluster.lease) + 1;
  service_->ShardReport();
  UpdateByAnother(10);

  EXPECT_NE(peer.Filling(reply), reply.shared().filling());
}

TEST_F(SharedExchangeAbuseTest, WhatIsWrittenAfterItWasReadHasNoEffect) {
  Start(kAsync, 1);
  Peer peer(*stub_);
  peer.Attach();
  const std::vector<float> half(kHalf, 1.0f);
  peer.Send(WithHeader(peer.Chunk(kHalf, half), 1, 0));
  peer.AwaitTaken(1);

  std::memset(peer.arena(), 0xff, kHalf * sizeof(float));  // All bits set: NaN.

  const v1::ExchangeReply reply = peer.Ask(peer.Chunk(0, half, kHalf * sizeof(float)));
  EXPECT_EQ(reply.push().outcome(), v1::APPLIED);
  EXPECT_EQ(peer.Read(reply), std::vector<float>(kValues, -1.0f));
}

TEST_F(SharedExchangeAbuseTest, WhatIsWrittenWhileItIsReadIsCheckedAsItWasTaken) {
  Start(kAsync, 1);
  Peer peer(*stub_);
  peer.Attach();
  std::atomic<bool> ends = false;
  std::thread vandal([&] {
    auto* const words = reinterpret_cast<std::atomic<float>*>(peer.arena());
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

TEST_F(SharedExchangeAbuseTest, WhatIsNoArenaIsRefusedByNameAndTheStreamGoesOn) {
  Start(kAsync, 1);
  const FileDescriptor unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(posix_fallocate(unsealed.get(), 0, kArenaBytes), 0);
  const FileDescriptor none(open("/dev/zero", O_RDONLY));
  uint64_t sequence = 0;
  for (const FileDescriptor* file :
       {&unsealed, &none, static_cast<const FileDescriptor*>(nullptr)}) {
    Peer peer(*stub_);
    EXPECT_EQ(peer.TryToAttach(file), "the shared memory is not sealed");
    v1::PushChunk chunk = WithHeader({}, sequence + 1, sequence);
    chunk.set_values(Bytes(kOnes));
    EXPECT_EQ(peer.Ask(chunk).push().outcome(), v1::APPLIED);
    ++sequence;
  }
}

TEST_F(SharedExchangeAbuseTest, AChunkIsNoLargerThanAMessageMayBe) {
  Start(kAsync, 1);
  constexpr size_t kLarge = (size_t{16} << 20) / sizeof(float);
  Peer peer(*stub_, 2 * kLarge);
  peer.Attach();
  v1::PushChunk chunk;
  chunk.mutable_shared()->set_count(kLarge + 1);
  const v1::ExchangeReply reply = peer.Ask(WithHeader(chunk, 1, 0));
  EXPECT_EQ(reply.push().outcome(), v1::LENGTH_MISMATCH);
  EXPECT_NE(reply.push().message().find("too many"), std::string::npos);
}

TEST_F(SharedExchangeAbuseTest, PlacesOutsideAnArenaAreRefusedWithoutEffect) {
  Start(kAsync, 1);
  struct Place {
    uint64_t begin, count;
  };
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  for (const Place place : {Place{kArenaBytes, 1}, Place{0, kArenaValues + 1}, Place{2, 1},
                            Place{kMost - 3, 2}, Place{0, kMost}, Place{4, kMost / 4}}) {
    SCOPED_TRACE(std::to_string(place.begin) + ", " + std::to_string(place.count));
    Peer peer(*stub_);
    peer.Attach();
    v1::PushChunk chunk;
    chunk.mutable_shared()->set_begin(place.begin);
    chunk.mutable_shared()->set_count(place.count);
    const v1::ExchangeReply reply = peer.Ask(WithHeader(chunk, 1, 0));
    EXPECT_EQ(reply.push().outcome(), v1::LENGTH_MISMATCH);
    EXPECT_NE(reply.push().message().find("not in the arena"), std::string::npos);
    EXPECT_EQ(peer.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_EQ(Pull().version, 0u);
  EXPECT_EQ(service_->ShardReport().bytes_queued(), 0u);
}

TEST_F(SharedExchangeAbuseTest, StepsOutOfOrderAreRefusedByName) {
  Start(kAsync, 1);
  {
    Peer peer(*stub_);
    EXPECT_NE(peer.Request(v1::SharedMemoryRequest::ATTACH).refusal(), "");
    EXPECT_EQ(peer.Request(v1::SharedMemoryRequest::OPEN).refusal(), "");
    EXPECT_NE(peer.Request(v1::SharedMemoryRequest::OPEN).refusal(), "");
    EXPECT_NE(peer.Request(v1::SharedMemoryRequest::ATTACH).refusal(), "") << "nobody connected";
    // The stream still works.
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

TEST_F(SharedExchangeAbuseTest, WhoeverSpeaksOnTheStreamOnceAttachedIsEnded) {
  Start(kAsync, 1);
  Peer peer(*stub_);
  peer.Attach();
  ASSERT_TRUE(peer.stream().Write(WithHeader(peer.Chunk(0, kOnes), 1, 0)));
  EXPECT_TRUE(peer.SeesTheEnd());
  EXPECT_EQ(peer.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Pull().version, 0u);
}

TEST_F(SharedExchangeAbuseTest, APushWhoseSocketOrStreamEndsHasNoEffect) {
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

TEST_F(SharedExchangeAbuseTest, WhatIsNoMessageEndsTheStream) {
  Start(kAsync, 1);
  for (const LocalNote note :
       {LocalNote{LocalNote::Kind::kTaken, 1}, LocalNote{LocalNote::Kind::kMessage, 7},
        LocalNote{LocalNote::Kind::kArena, 0}}) {
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

TEST_F(SharedExchangeAbuseTest, WhoComesOverTheNetworkGetsNone) {
  Start(kAsync, 1);
  const std::unique_ptr<v1::Shard::Stub> remote = v1::Shard::NewStub(loopback_.NewChannel());
  Peer peer(*remote);
  const v1::SharedMemoryReply reply = peer.Request(v1::SharedMemoryRequest::OPEN);
  EXPECT_EQ(reply.socket(), "");
  EXPECT_NE(reply.refusal().find("over the network"), std::string::npos);
}

TEST_F(SharedExchangeAbuseTest, APushCallHasNoSharedMemory) {
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
