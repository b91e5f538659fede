#include "common/wire/control_wire.h"

#include <gtest/gtest.h>

#include <string>

namespace slipstream {
namespace {

TensorLayout SomeLayout() {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("0.weight", {300, 7}).ok());
  EXPECT_TRUE(layout.Append("0.bias", {300}).ok());
  return layout;
}

TEST(ControlWireTest, EverythingSurvivesTheWayThere) {
  const View view{ViewNumber{4},
                  {{WorkerId{0}, Incarnation{5}, true}, {WorkerId{3}, Incarnation{6}, false}}};
  const TensorLayout layout = SomeLayout();
  const ShardMap map = ShardMap::Cut(layout, 3).value();

  EXPECT_EQ(FromWire(ToWire(Phase::kDraining)).value(), Phase::kDraining);
  EXPECT_EQ(FromWire(ToWire(view)).value(), view);
  EXPECT_EQ(FromWire(ToWire(layout)).value(), layout);
  EXPECT_EQ(FromWire(ToWire(map), layout).value(), map);
}

TEST(ControlWireTest, RefusesAnUnknownPhase) {
  EXPECT_FALSE(FromWire(v1::PHASE_UNSPECIFIED).ok());
  EXPECT_FALSE(FromWire(static_cast<v1::Phase>(9)).ok());
}

TEST(ControlWireTest, RefusesMembersOutOfOrderOrTwice) {
  for (const uint32_t second : {2u, 1u}) {
    v1::View wire;
    wire.add_members()->set_worker(2);
    wire.add_members()->set_worker(second);

    EXPECT_EQ(FromWire(wire).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(ControlWireTest, RefusesALayoutBeyondItsLimits) {
  v1::Layout wire;
  v1::TensorSpec& tensor = *wire.add_tensors();
  tensor.set_name("a");
  tensor.add_shape(uint64_t{1} << 40);
  tensor.add_shape(uint64_t{1} << 40);

  EXPECT_EQ(FromWire(wire).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ControlWireTest, RefusesAShardMapThatDoesNotCoverTheModelOrHasAnotherFingerprint) {
  const TensorLayout layout = SomeLayout();
  v1::ShardMap wire = ToWire(ShardMap::Cut(layout, 2).value());
  v1::ShardMap overlapping = wire;
  overlapping.mutable_ranges(0)->set_end(wire.ranges(0).end() + 16);
  v1::ShardMap moved = overlapping;
  moved.mutable_ranges(1)->set_begin(wire.ranges(0).end() + 16);
  v1::ShardMap renamed = wire;
  renamed.set_fingerprint(wire.fingerprint() + 1);

  EXPECT_NE(FromWire(overlapping, layout).status().message().find("shard 1"),
            absl::string_view::npos);
  EXPECT_NE(FromWire(moved, layout).status().message().find("fingerprint"),
            absl::string_view::npos);
  EXPECT_NE(FromWire(renamed, layout).status().message().find("fingerprint"),
            absl::string_view::npos);
  EXPECT_FALSE(FromWire(v1::ShardMap(), layout).ok());
}

}  // namespace
}  // namespace slipstream
