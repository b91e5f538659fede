#include "common/wire/shard_wire.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "common/base/limits.h"
#include "common/layout/tensor_layout.h"

namespace slipstream {
namespace {

const Identity kIdentity{0xfedcba9876543210, WorkerId{7}, Incarnation{9}};

PushHeader SomePush() {
  return {.identity = kIdentity,
          .sequence = Sequence{3},
          .shard_map = 0x1234,
          .base = Version{40},
          .generation = Generation{3},
          .count = 5000,
          .kind = PushKind::kDelta,
          .examples = 32,
          .batches = {{70, 8}, {3, 1}},
          .pull = true,
          .chunk_bytes = 1 << 20,
          .slot = 1,
          .clock = WorkerClock{78},
          .rests = true,
          .leaves_out = true,
          .holds_base = true,
          .weights_encoding = Encoding::kBf16};
}

TEST(ShardWireTest, EveryHeaderSurvivesTheWayThere) {
  const PushReply reply{PushOutcome::kOutOfSequence,
                        Version{5},
                        2,
                        Durability::kSynced,
                        Sequence{6},
                        70,
                        "why",
                        Generation{3}};
  PushReply again;
  again.outcome = PushOutcome::kDuplicate;
  again.first_outcome = PushOutcome::kDroppedLate;
  const PullRequest pull{kIdentity, 1,           Version{2}, Generation{3},   true,
                         4096,      Sequence{5}, 1,          WorkerClock{79}, Encoding::kFp16};
  const PullRequest reader{std::nullopt, 1, Version{2}, Generation{3}, false, 0};
  const RoundWork work{RoundWork::Kind::kCompute, {12, 3}};
  const WeightsHeader weights{Version{8}, 100, work};
  const WeightsHeader plain{Version{8},      100, std::nullopt, true, Generation{3},
                            WorkerClock{80}, 640};
  const InitializeHeader initialize{kIdentity, 4, 5, 6};

  PushHeader publication = SomePush();
  publication.kind = PushKind::kValues;
  publication.label = 42;
  PushHeader composite = SomePush();
  composite.sequence = Sequence{};
  composite.weighs_examples = true;
  composite.parts = {{.worker = WorkerId{3},
                      .incarnation = Incarnation{4},
                      .sequence = Sequence{5},
                      .base = Version{41},
                      .slot = 1,
                      .clock = WorkerClock{6},
                      .examples = 7,
                      .batches = {{8, 9}},
                      .rests = true,
                      .pull = true,
                      .loss = 0.5f,
                      .checksum = 10},
                     {.worker = WorkerId{11}, .sequence = Sequence{12}}};
  WeightsHeader combined = plain;
  combined.parts = {{work, WorkerClock{5}}, {std::nullopt, WorkerClock{6}}};
  PullRequest exact = reader;
  exact.exact = Stamp{.publisher = Incarnation{3}, .number = 7};
  exact.wants_trailer = true;
  WeightsHeader published = plain;
  published.stamp = exact.exact;
  published.label = 42;

  EXPECT_EQ(FromWire(ToWire(publication)).value(), publication);
  EXPECT_EQ(FromWire(ToWire(composite)).value(), composite);
  EXPECT_EQ(FromWire(ToWire(exact)).value(), exact);
  EXPECT_EQ(FromWire(ToWire(published)).value(), published);
  EXPECT_EQ(FromWire(ToWire(kIdentity)), kIdentity);
  EXPECT_EQ(FromWire(ToWire(SomePush())).value(), SomePush());
  EXPECT_EQ(FromWire(ToWire(reply)).value(), reply);
  EXPECT_EQ(FromWire(ToWire(again)).value(), again);
  EXPECT_EQ(FromWire(ToWire(pull)).value(), pull);
  EXPECT_EQ(FromWire(ToWire(reader)).value(), reader);
  EXPECT_EQ(FromWire(ToWire(work)).value(), work);
  EXPECT_EQ(FromWire(ToWire(weights)).value(), weights);
  EXPECT_EQ(FromWire(ToWire(plain)).value(), plain);
  EXPECT_EQ(FromWire(ToWire(combined)).value(), combined);
  EXPECT_EQ(FromWire(ToWire(initialize)).value(), initialize);
}

TEST(ShardWireTest, OutcomesHaveTheWiresNumbersAndNames) {
  int outcomes = 0;
  for (int number = 1; number < 64; ++number) {
    if (!v1::PushOutcome_IsValid(number)) continue;
    ++outcomes;
    EXPECT_EQ(Name(static_cast<PushOutcome>(number)),
              v1::PushOutcome_Name(static_cast<v1::PushOutcome>(number)));
  }
  EXPECT_EQ(outcomes, 18);
}

/// Expects that `wire` is refused with an error that names `field`.
template <typename Wire>
void ExpectRefused(const Wire& wire, const std::string& field) {
  const auto read = FromWire(wire);
  ASSERT_FALSE(read.ok()) << field;
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(read.status().message().find(field), std::string::npos) << read.status();
}

TEST(ShardWireTest, RefusesAPushHeaderThatBreaksTheContract) {
  const auto expect_refused = [](const std::string& field,
                                 const std::function<void(v1::PushHeader&)>& change) {
    v1::PushHeader wire = ToWire(SomePush());
    change(wire);
    ExpectRefused(wire, field);
  };
  expect_refused("header.identity", [](v1::PushHeader& wire) { wire.clear_identity(); });
  expect_refused("header.sequence", [](v1::PushHeader& wire) { wire.set_sequence(0); });
  expect_refused("header.count",
                 [](v1::PushHeader& wire) { wire.set_count(TensorLayout::kParametersMax + 1); });
  expect_refused("header.parts: 65, more than 64", [](v1::PushHeader& wire) {
    while (wire.parts_size() < 65) wire.add_parts()->set_sequence(1);
  });
  expect_refused("header.parts.sequence", [](v1::PushHeader& wire) { wire.add_parts(); });
  expect_refused("header.parts.batches.count", [](v1::PushHeader& wire) {
    wire.add_parts()->set_sequence(1);
    wire.mutable_parts(0)->add_batches();
  });
  expect_refused("header.kind",
                 [](v1::PushHeader& wire) { wire.set_kind(static_cast<v1::PushKind>(9)); });
  expect_refused("header.batches.count",
                 [](v1::PushHeader& wire) { wire.mutable_batches(1)->set_count(0); });
  expect_refused("header.batches.first",
                 [](v1::PushHeader& wire) { wire.mutable_batches(0)->set_first(~uint64_t{0}); });
  expect_refused("header.batches: 65, more than 64", [](v1::PushHeader& wire) {
    while (wire.batches_size() < 65) *wire.add_batches() = wire.batches(0);
  });
  for (const uint32_t bytes :
       {uint32_t{1}, kChunkBytesMin - 4, kChunkBytesMin + 2, kChunkBytesMax + 4, ~uint32_t{0}}) {
    expect_refused("header.chunk_bytes",
                   [bytes](v1::PushHeader& wire) { wire.set_chunk_bytes(bytes); });
  }
}

TEST(ShardWireTest, EncodingsHaveTheWiresNumbersAndNames) {
  size_t encodings = 0;
  for (int number = 0; number < 64; ++number) {
    if (!v1::Encoding_IsValid(number)) continue;
    ++encodings;
    EXPECT_EQ(absl::AsciiStrToUpper(std::string(RowOf(static_cast<Encoding>(number)).name)),
              v1::Encoding_Name(static_cast<v1::Encoding>(number)));
  }
  EXPECT_EQ(encodings, kEncodingRows.size());
}

TEST(ShardWireTest, RefusesNumbersThatNameNothing) {
  v1::PushHeader push = ToWire(SomePush());
  push.set_weights_encoding(static_cast<v1::Encoding>(63));
  ExpectRefused(push, "header.weights_encoding: 63");
  v1::PullRequest pull = ToWire(PullRequest{});
  pull.set_weights_encoding(static_cast<v1::Encoding>(-1));
  ExpectRefused(pull, "weights_encoding: -1");
  push.set_weights_encoding(v1::ONEBIT);
  ExpectRefused(push, "header.weights_encoding: weights do not travel as onebit");
  pull.set_weights_encoding(v1::ONEBIT);
  ExpectRefused(pull, "weights_encoding: weights do not travel as onebit");

  v1::PushReply reply = ToWire(PushReply{});
  for (const int number : {0, 5, 15, 30, -1}) {
    reply.set_outcome(static_cast<v1::PushOutcome>(number));
    ExpectRefused(reply, "push.outcome");
  }
  reply = ToWire(PushReply{});
  reply.set_first_outcome(v1::BUFFERED);
  ExpectRefused(reply, "push.first_outcome");
  reply.set_outcome(v1::DUPLICATE);
  for (const int number : {0, 3, 5, 26}) {
    reply.set_first_outcome(static_cast<v1::PushOutcome>(number));
    ExpectRefused(reply, "push.first_outcome");
  }
  reply = ToWire(PushReply{});
  reply.set_durability(static_cast<v1::Durability>(4));
  ExpectRefused(reply, "push.durability");

  v1::WeightsHeader weights = ToWire(WeightsHeader{Version{1}, 2, RoundWork{}});
  weights.mutable_work()->set_kind(static_cast<v1::RoundWork::Kind>(4));
  ExpectRefused(weights, "work.kind");
  weights.mutable_work()->set_kind(v1::RoundWork::COMPUTE);
  weights.mutable_work()->clear_batches();
  ExpectRefused(weights, "work.batches: missing");
  weights.mutable_work()->clear_kind();
  ExpectRefused(weights, "work.kind");
  weights.mutable_work()->set_kind(v1::RoundWork::COMPUTE);
  weights.mutable_work()->clear_batches();
  ExpectRefused(weights, "work.batches: missing");
}

TEST(ShardWireTest, RefusesCountsNoModelHas) {
  const uint64_t count = TensorLayout::kParametersMax + 1;
  ExpectRefused(ToWire(WeightsHeader{Version{1}, count, std::nullopt}), "header.count");
  ExpectRefused(ToWire(InitializeHeader{kIdentity, 1, 2, count}), "header.count");
}

TEST(ShardWireTest, RefusesAPullThatTrainsForNobodyOrBeforeNoPush) {
  ExpectRefused(ToWire(PullRequest{.trains = true, .sequence = Sequence{1}}), "identity");
  ExpectRefused(ToWire(PullRequest{.identity = kIdentity, .trains = true}), "sequence");
  PullRequest exact = {.identity = kIdentity, .trains = true, .sequence = Sequence{1}};
  exact.exact = Stamp{};
  ExpectRefused(ToWire(exact), "exact: a pull that trains takes the newest");
}

}  // namespace
}  // namespace slipstream
