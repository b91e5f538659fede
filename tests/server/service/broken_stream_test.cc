#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/service/shard_service_fixture.h"

// Tests of streams of chunks that do not make a push: each is refused by name, or ended, and leaves
// nothing behind.

namespace slipstream {
namespace {

using testing::HasSubstr;

class BrokenStreamTest : public ShardServiceTest {
 protected:
  void SetUp() override { Start(kAsync, 1); }

  v1::PushChunk First(size_t values) const {
    v1::PushChunk chunk = Further(0, values);
    *chunk.mutable_header() = Header(0, 1, 0);
    return chunk;
  }

  static v1::PushChunk Further(uint64_t offset, size_t values) {
    v1::PushChunk chunk;
    chunk.set_offset(offset);
    chunk.set_values(Bytes(std::vector<float>(values, 1.0f)));
    return chunk;
  }

  struct Ended {
    v1::PushReply reply;
    grpc::Status status;
  };

  /// Exchanges these messages. Returns the reply and the status.
  Ended Exchange(const std::vector<v1::PushChunk>& chunks) {
    grpc::ClientContext context;
    SetDeadline(context);
    auto stream = stub_->Exchange(&context);
    for (const v1::PushChunk& chunk : chunks) {
      if (!stream->Write(chunk)) break;
    }
    Ended ended;
    v1::ExchangeReply reply;
    if (stream->Read(&reply)) ended.reply = reply.push();
    EXPECT_FALSE(stream->Read(&reply)) << "the stream went on";
    ended.status = stream->Finish();
    return ended;
  }

  /// Checks that nothing is queued, that the model is unchanged, and that the push can still be
  /// made.
  void ExpectNoEffect() {
    AwaitReport([](const v1::ShardStatus& status) { return status.bytes_queued() == 0; },
                "the memory of the push to come back");
    const Pulled pulled = Pull();
    EXPECT_EQ(pulled.version, 0u);
    EXPECT_EQ(pulled.values, std::vector<float>(kValues, 0.0f));
    EXPECT_EQ(Push(Header(0, 1, 0), std::vector<float>(kValues, 1.0f)).outcome(), v1::APPLIED);
  }

  void ExpectRefused(const std::vector<v1::PushChunk>& chunks, const std::string& words) {
    const Ended ended = Exchange(chunks);

    EXPECT_EQ(ended.reply.outcome(), v1::LENGTH_MISMATCH);
    EXPECT_THAT(ended.reply.message(), HasSubstr(words));
    EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    ExpectNoEffect();
  }
};

TEST_F(BrokenStreamTest, AChunkThatCameBefore) {
  ExpectRefused({First(500), Further(0, 500)}, "came twice");
}

TEST_F(BrokenStreamTest, AChunkThatOverlapsAnother) {
  ExpectRefused({First(500), Further(499, 501)}, "came twice");
}

TEST_F(BrokenStreamTest, AChunkBeyondTheEnd) {
  ExpectRefused({First(500), Further(500, 501)}, "were announced");
}

TEST_F(BrokenStreamTest, APushWithinAPush) {
  ExpectRefused({First(500), First(500)}, "before the one in front of it was complete");
}

TEST_F(BrokenStreamTest, AChunkWithoutAPush) {
  ExpectRefused({Further(0, 500)}, "values came without a header");
}

TEST_F(BrokenStreamTest, AChunkThatEndsWithinAValue) {
  v1::PushChunk ragged = Further(500, 500);
  ragged.mutable_values()->pop_back();

  const Ended ended = Exchange({First(500), ragged});

  EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(ended.status.error_message(), "");
  ExpectNoEffect();
}

TEST_F(BrokenStreamTest, AMessageBeyondWhatTheServerTakes) {
  const Ended ended = Exchange({First(500), Further(500, size_t{2} << 20)});

  EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectNoEffect();
}

TEST_F(BrokenStreamTest, AStreamThatIsResetBetweenChunks) {
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Exchange(&context);
  ASSERT_TRUE(stream->Write(First(500)));
  AwaitQueued();

  context.TryCancel();

  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  ExpectNoEffect();
}

}  // namespace
}  // namespace slipstream
