#include "server/service/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/layout/shard_map.h"
#include "server/storage/checkpoint_store.h"
#include "tests/server/service/gated_disk.h"
#include "tests/support/specs.h"

namespace slipstream {
namespace {

using testing::Each;

constexpr uint64_t kRun = 5;
constexpr size_t kValues = 8;

std::shared_ptr<FloatBuffer> Filled(float value) {
  std::shared_ptr<FloatBuffer> buffer = FloatBuffer::TryMake(kValues);
  std::ranges::fill(buffer->values(), value);
  return buffer;
}

/// Returns a save of version 9, with what its log needs.
std::shared_ptr<const ShardSave> Save() {
  auto save = std::make_shared<ShardSave>(ShardSave{
      .state = {.round = Round(PolicyTraits::Order::kArrival, PolicyTraits::Weighing::kEqual)}});
  save->state.plan = ShardPlan{.run = kRun, .count = kValues};
  save->state.decided = save->state.published = Version{9};
  save->state.initialized_grant = 3;
  save->values.arrays = {{"weights", Filled(9)}};
  save->bases = {{Version{6}, Filled(6)}, {Version{7}, Filled(7)}};
  save->log = 12;
  return save;
}

TEST(CheckpointWriterTest, KeepsTheBasesAndTheNumberOfTheLog) {
  GatedDisk disk;
  CheckpointWriter writer({.now = [] { return absl::Now(); }},
                          CheckpointStore::Open(disk, "/saved", kRun, ShardId{0}).value());
  writer.SetModel(LayoutOf({kValues}), {0, kValues});
  EXPECT_FALSE(writer.HasSavedInitial(3));
  writer.Write(Save());
  writer.Finish(std::chrono::steady_clock::now() + std::chrono::seconds(20));
  EXPECT_TRUE(writer.HasSavedInitial(3));
  EXPECT_FALSE(writer.HasSavedInitial(4));

  writer.StopWriting();
  ASSERT_EQ(writer.saved().size(), 1u);
  const SavedVersion which = writer.saved().front();
  EXPECT_EQ(writer.store().LogOf(which), 12u);
  const absl::StatusOr<ShardSave> read = writer.ReadState(which);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->log, 12u);
  ArrayBuffers arrays = {{"weights", Filled(0)}};
  for (const auto& [version, weights] : read->bases) {
    arrays.emplace_back(NameOfBase(version), Filled(0));
  }
  ASSERT_EQ(arrays.size(), 3u);
  const absl::Status loaded = writer.ReadArrays(which, arrays);
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_THAT(arrays[0].second->values(), Each(9.0f));
  EXPECT_THAT(arrays[1].second->values(), Each(6.0f));
  EXPECT_THAT(arrays[2].second->values(), Each(7.0f));
}

}  // namespace
}  // namespace slipstream
