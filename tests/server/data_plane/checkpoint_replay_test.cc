// Tests of the log between two checkpoints, which leads from one to the other.

#include "server/data_plane/checkpoint_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/layout/tensor_parts.h"
#include "server/data_plane/shard_save.h"
#include "server/storage/checkpoint_store.h"
#include "server/storage/posix_disk.h"
#include "tests/server/data_plane/shard_service_fixture.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class CheckpointReplayTest : public ShardServiceTest {
 protected:
  CheckpointReplayTest() {
    std::filesystem::remove_all(directory_);
    optimizer_.kind = RuleKind::kMomentum;
    durability_ = {.level = DurabilitySpec::Level::kSynced, .directory = directory_};
    open_store_ = [this](uint64_t run, bool /*has_begun*/) {
      return CheckpointStore::Open(disk_, directory_, run, ShardId{0});
    };
  }
  ~CheckpointReplayTest() override { std::filesystem::remove_all(directory_); }

  /// Runs a shard of which version 0 and a later one are saved, and which makes 4 versions.
  void Train() {
    Start(kAsync, 1);
    for (const uint64_t sequence : {1u, 2u}) PushOnes(sequence);
    ++orders_.number;
    orders_.save.number = 1;
    service_->OnOrders(orders_);
    PushOnes(3);
    AwaitReport([](const v1::ShardStatus& status) { return status.checkpoint().version() >= 2; },
                "a checkpoint");
    PushOnes(4);
    EndProcess();
  }

  void PushOnes(uint64_t sequence) {
    const v1::PushReply reply =
        Push(Header(0, sequence, sequence - 1), std::vector<float>(kValues, 1.0f));
    EXPECT_EQ(reply.outcome(), v1::APPLIED);
    EXPECT_EQ(reply.durability(), v1::SYNCED);
  }

  /// Returns the checkpoints that the shard has kept, oldest first.
  std::vector<CheckpointFolder> Folders() {
    auto store = CheckpointStore::Open(disk_, directory_, kRun, ShardId{0}).value();
    std::vector<CheckpointFolder> folders;
    for (const SavedVersion& saved : store->saved()) {
      const CheckpointName name = {.generation = saved.generation, .version = saved.version};
      folders.push_back(
          CheckpointFolder::Open(disk_, store->directory() + "/" + CheckpointDirectoryName(name))
              .value());
    }
    return folders;
  }

  LoggedShard Logged() const {
    return {.shard = ShardId{0},
            .run = SettingsOf(kAsync),
            .model = *orders_.model,
            .directory =
                directory_ + "/" + RunDirectoryName(kRun) + "/" + ShardDirectoryName(ShardId{0})};
  }

  /// Adds 1 to a value of an array of a checkpoint, which stays sound.
  void Change(const CheckpointFolder& folder, const std::string& array, size_t index) {
    const CheckpointManifest& manifest = folder.manifest();
    std::vector<std::vector<float>> values;
    std::vector<LoadedArray> loaded;
    std::vector<CheckpointArray> arrays;
    for (const ManifestArray& each : manifest.arrays) values.emplace_back(each.values);
    for (size_t i = 0; i < values.size(); ++i) {
      loaded.push_back({manifest.arrays[i].name, values[i]});
      arrays.push_back({manifest.arrays[i].name, values[i]});
    }
    ASSERT_TRUE(folder.ReadArrays(loaded).ok());
    const auto changed = std::ranges::find(manifest.arrays, array, &ManifestArray::name);
    values.at(static_cast<size_t>(changed - manifest.arrays.begin())).at(index) += 1;
    auto store = CheckpointStore::Open(disk_, directory_, kRun, ShardId{0}).value();
    const absl::Status saved =
        store->Save(manifest.facts, PartOf(orders_.model->layout, manifest.facts.range),
                    folder.ReadState().value(), arrays);
    ASSERT_TRUE(saved.ok()) << saved;
  }

  /// Changes the state of a checkpoint, which stays sound.
  void ChangeState(const CheckpointFolder& folder, const std::function<void(ShardSave&)>& change) {
    const CheckpointManifest& manifest = folder.manifest();
    std::vector<std::vector<float>> values;
    std::vector<LoadedArray> loaded;
    std::vector<CheckpointArray> arrays;
    for (const ManifestArray& each : manifest.arrays) values.emplace_back(each.values);
    for (size_t i = 0; i < values.size(); ++i) {
      loaded.push_back({manifest.arrays[i].name, values[i]});
      arrays.push_back({manifest.arrays[i].name, values[i]});
    }
    ASSERT_TRUE(folder.ReadArrays(loaded).ok());
    ShardSave save = DecodeSave(folder.ReadState().value()).value();
    change(save);
    auto store = CheckpointStore::Open(disk_, directory_, kRun, ShardId{0}).value();
    const absl::Status saved =
        store->Save(manifest.facts, PartOf(orders_.model->layout, manifest.facts.range),
                    EncodeSave(save), arrays);
    ASSERT_TRUE(saved.ok()) << saved;
  }

  const std::string directory_ = testing::TempDir() + "/checkpoint_replay_test";
  PosixDisk disk_;
};

TEST_F(CheckpointReplayTest, EachCheckpointLeadsToTheNextAndTheLastToTheEnd) {
  Train();
  const std::vector<CheckpointFolder> folders = Folders();
  ASSERT_GE(folders.size(), 2u);

  for (size_t i = 0; i + 1 < folders.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "checkpoint " << i);
    const absl::StatusOr<ReplayedLog> replayed =
        ReplayLog(disk_, Logged(), folders[i], &folders[i + 1]);
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(replayed->difference, "");
    EXPECT_EQ(replayed->version, folders[i + 1].manifest().facts.saved.version);
  }
  const absl::StatusOr<ReplayedLog> tail = ReplayLog(disk_, Logged(), folders.back(), nullptr);
  ASSERT_TRUE(tail.ok()) << tail.status();
  EXPECT_EQ(tail->version, Version{4});
}

TEST_F(CheckpointReplayTest, NamesTheArrayAndThePlaceThatDiffer) {
  for (const char* array : {"weights", "state0"}) {
    SCOPED_TRACE(array);
    std::filesystem::remove_all(directory_);
    Train();
    Change(Folders().back(), array, 7);
    const std::vector<CheckpointFolder> folders = Folders();

    const absl::StatusOr<ReplayedLog> replayed =
        ReplayLog(disk_, Logged(), folders[folders.size() - 2], &folders.back());

    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_THAT(replayed->difference,
                StartsWith(std::string("differs at array ") + array + ", index 7: "));
  }
}

/// The checksums of such a checkpoint are right: somebody has put it together of parts that do not
/// belong together, or has other settings than the run had.
TEST_F(CheckpointReplayTest, AStateThatContradictsItselfIsNamedWithItsFile) {
  struct Case {
    std::string why;
    std::function<void(ShardSave&)> change;
  };
  const std::vector<Case> cases = {
      {"it is of another version than the checkpoint", [](ShardSave& save) { ++save.log; }},
      {"an epoch has no mini-batches",
       [](ShardSave& save) { save.state.run.plan->batches_per_epoch = 0; }},
      {"values, and the shard has", [](ShardSave& save) { ++save.state.run.plan->count; }},
      {"a job makes version",
       [](ShardSave& save) {
         save.unfinished = {{0, Version{1'000}}};
       }},
      {"its jobs have more bytes than the shard had taken",
       [](ShardSave& save) {
         save.unfinished = {{save.state.intake.bytes_queued() + 1, std::nullopt}};
       }},
      {"a call that waits is no push and no pull",
       [](ShardSave& save) { save.state.waiting.Add({.call = CallId{77}}); }},
      {"has more weights than it can compute from",
       [](ShardSave& save) { save.state.members.At(WorkerId{0}).given[9] = {Version{}}; }}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.why);
    std::filesystem::remove_all(directory_);
    Train();
    ChangeState(Folders().back(), each.change);
    const std::vector<CheckpointFolder> folders = Folders();
    ASSERT_FALSE(folders.empty());

    const absl::StatusOr<ReplayedLog> replayed =
        ReplayLog(disk_, Logged(), folders.back(), nullptr);

    EXPECT_TRUE(absl::IsFailedPrecondition(replayed.status())) << replayed.status();
    EXPECT_THAT(std::string(replayed.status().message()), HasSubstr(each.why));
    EXPECT_THAT(std::string(replayed.status().message()),
                StartsWith(folders.back().StatePath() + ": "));
  }
}

TEST_F(CheckpointReplayTest, ACheckpointWithoutALogIsNamed) {
  durability_.level = DurabilitySpec::Level::kCheckpoint;
  Start(kAsync, 1);
  AwaitReport([](const v1::ShardStatus& status) { return status.has_checkpoint(); },
              "a checkpoint");
  ASSERT_TRUE(service_->Drain(absl::Seconds(20)).ok());
  EndProcess();

  const absl::StatusOr<ReplayedLog> replayed =
      ReplayLog(disk_, Logged(), Folders().front(), nullptr);

  EXPECT_TRUE(absl::IsFailedPrecondition(replayed.status()));
  EXPECT_THAT(replayed.status().message(), HasSubstr("was made without a log"));
}

}  // namespace
}  // namespace slipstream
