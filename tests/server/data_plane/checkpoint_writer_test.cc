#include "server/data_plane/checkpoint_writer.h"

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
#include "server/data_plane/shard_recovery.h"
#include "server/data_plane/training_state.h"
#include "server/storage/checkpoint_store.h"
#include "tests/server/data_plane/gated_disk.h"
#include "tests/support/specs.h"

namespace slipstream {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr uint64_t kRun = 5;
constexpr size_t kValues = 8;

std::shared_ptr<FloatBuffer> Filled(float value) {
  std::shared_ptr<FloatBuffer> buffer = FloatBuffer::TryMake(kValues);
  std::ranges::fill(buffer->values(), value);
  return buffer;
}

/// Returns a save of version 9, with what its log needs.
std::shared_ptr<const ShardSave> Save() {
  auto save = std::make_shared<ShardSave>(
      ShardSave{.state = {.open = {.round = Round(PolicyTraits::Order::kArrival,
                                                  PolicyTraits::Weighing::kEqual)}}});
  save->state.run.plan = ShardPlan{.run = kRun, .count = kValues};
  for (uint64_t version = 1; version <= 9; ++version) {
    save->state.versions.Decide({});
    save->state.versions.Publish(Version{version}, /*kept_max=*/1);
  }
  save->state.initial_weights.Place(3);
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
  const auto state =
      TrainingState::TryMake(OptimizerSpec(), LayoutOf({kValues}), {0, kValues}, false);
  const ArrayBuffers arrays = state->NewArrays();
  const absl::StatusOr<ShardSave> read = LoadCheckpoint(writer.store(), which, arrays, *state);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->log, 12u);
  ASSERT_EQ(arrays.size(), 1u);
  EXPECT_THAT(arrays[0].second->values(), Each(9.0f));
  ASSERT_EQ(read->bases.size(), 2u);
  EXPECT_THAT(read->bases.at(Version{6})->values(), Each(6.0f));
  EXPECT_THAT(read->bases.at(Version{7})->values(), Each(7.0f));
}

TEST(CheckpointWriterTest, NamesTheDirectoryThatLacksTheLastCheckpoint) {
  GatedDisk disk;
  CheckpointWriter writer({.now = [] { return absl::Now(); }},
                          CheckpointStore::Open(disk, "/saved", kRun, ShardId{0}).value());
  writer.SetModel(LayoutOf({kValues}), {0, kValues});
  EXPECT_TRUE(writer.LastSave().ok()) << "nothing was to be saved";
  writer.Write(Save());
  writer.Finish(std::chrono::steady_clock::now() + std::chrono::seconds(20));
  EXPECT_TRUE(writer.LastSave().ok());

  disk.StopMachine();
  writer.Write(Save());
  writer.Finish(std::chrono::steady_clock::now() + std::chrono::seconds(1));

  const absl::Status lost = writer.LastSave();
  EXPECT_EQ(lost.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(lost.message()), HasSubstr(writer.store().directory()));
}

TEST(CheckpointWriterTest, SaysThatTheDiskIsTooSlowForTheLastCheckpoint) {
  GatedDisk disk;
  CheckpointWriter writer({.now = [] { return absl::Now(); }},
                          CheckpointStore::Open(disk, "/saved", kRun, ShardId{0}).value());
  writer.SetModel(LayoutOf({kValues}), {0, kValues});
  disk.Close("checkpoint-");
  writer.Write(Save());
  disk.AwaitSomebody();
  writer.Finish(std::chrono::steady_clock::now());

  EXPECT_THAT(std::string(writer.LastSave().message()), HasSubstr("too slow"));

  disk.Open();
}

}  // namespace
}  // namespace slipstream
