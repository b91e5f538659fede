#include "common/wire/chunk_wire.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/kernels/copy_values.h"
#include "proto/shard.pb.h"

namespace slipstream {
namespace {

const Identity kIdentity{1, WorkerId{2}, Incarnation{3}};
const std::vector<float> kValues = {0.5f, -1, 1e-30f, 4};

LentValues Lent() { return {kValues, std::make_shared<int>(0)}; }

std::vector<float> Copied(const ReceivedValues& received) {
  std::vector<float> values(received.count());
  CopyValues(received.segments(), values);
  return values;
}

TEST(ChunkWireTest, EveryMessageSurvivesTheWayThere) {
  const PushHeader push{.identity = kIdentity, .sequence = Sequence{1}, .count = 4};
  const WeightsHeader weights{Version{6}, 4, RoundWork{RoundWork::Kind::kCompute, 8}};
  const InitializeHeader initialize{kIdentity, 1, 2, 4};
  PushReply reply;
  reply.outcome = PushOutcome::kBuffered;
  reply.version = Version{2};

  const auto push_chunk = DecodePushChunk(EncodePushChunk(push, 12, Lent()));
  const auto weights_chunk = DecodeWeightsChunk(EncodeWeightsChunk(weights, 13, Lent()));
  const auto init_chunk = DecodeInitializeChunk(EncodeInitializeChunk(initialize, 14, Lent()));
  const auto exchange = DecodeExchangeChunk(EncodeExchangeChunk(reply, weights, 15, Lent()));

  EXPECT_EQ(push_chunk.value().header, push);
  EXPECT_EQ(push_chunk->offset, 12u);
  EXPECT_EQ(Copied(push_chunk->values), kValues);
  EXPECT_EQ(weights_chunk.value().header, weights);
  EXPECT_EQ(weights_chunk->offset, 13u);
  EXPECT_EQ(Copied(weights_chunk->values), kValues);
  EXPECT_EQ(init_chunk.value().header, initialize);
  EXPECT_EQ(init_chunk->offset, 14u);
  EXPECT_EQ(Copied(init_chunk->values), kValues);
  EXPECT_EQ(exchange.value().push, reply);
  EXPECT_EQ(exchange->header, weights);
  EXPECT_EQ(exchange->offset, 15u);
  EXPECT_EQ(Copied(exchange->values), kValues);
}

TEST(ChunkWireTest, WhatIsNotThereStaysAbsent) {
  const auto push = DecodePushChunk(EncodePushChunk(std::nullopt, 5, Lent()));
  const auto exchange = DecodeExchangeChunk(EncodeExchangeChunk(std::nullopt, std::nullopt, 0, {}));

  EXPECT_EQ(push.value().header, std::nullopt);
  EXPECT_EQ(exchange.value().push, std::nullopt);
  EXPECT_EQ(exchange->header, std::nullopt);
  EXPECT_EQ(exchange->values.count(), 0u);
}

TEST(ChunkWireTest, ABadHeaderIsNamed) {
  v1::PushChunk wire;
  wire.mutable_header()->set_sequence(1);  // No identity.
  const grpc::Slice slice(wire.SerializeAsString());

  const absl::Status status = DecodePushChunk(grpc::ByteBuffer(&slice, 1)).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "header.identity: missing");
}

}  // namespace
}  // namespace slipstream
