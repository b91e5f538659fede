#include "server/storage/checkpoint_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "server/storage/posix_disk.h"
#include "tests/server/storage/checkpoint_fixture.h"
#include "tests/support/simulated_disk.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kRunName[] = "00000000000000ab";

void Save(Disk& disk, const std::string& directory, uint64_t run, uint32_t shard,
          uint64_t version) {
  auto store = CheckpointStore::Open(disk, directory, run, ShardId{shard}).value();
  const Content content = Content::Of(version);
  const CheckpointArray weights = {"weights", content.weights};
  ASSERT_TRUE(
      store
          ->Save({.run = run, .shard = ShardId{shard}, .range = kRange, .saved = Saved(0, version)},
                 PartOf(WholeModel(), kRange), content.state, {&weights, 1})
          .ok());
}

class CheckpointListingTest : public testing::Test {
 protected:
  CheckpointListingTest() {
    fs::remove_all(directory_);
    for (const uint32_t shard : {0u, 1u}) {
      for (const uint64_t version : {3, 20}) Save(disk_, directory_, kRun, shard, version);
    }
  }
  ~CheckpointListingTest() override {
    fs::current_path(before_);
    fs::remove_all(directory_);
  }

  /// Returns the paths of the checkpoints below a directory; all are of use, and of the run.
  std::vector<std::string> PathsBelow(const std::string& directory) {
    const absl::StatusOr<std::vector<ListedCheckpoint>> listed = ListCheckpoints(disk_, directory);
    EXPECT_TRUE(listed.ok()) << listed.status();
    std::vector<std::string> paths;
    if (!listed.ok()) return paths;
    for (const ListedCheckpoint& each : *listed) {
      EXPECT_TRUE(each.state.ok()) << each.state;
      EXPECT_EQ(each.run, kRun);
      paths.push_back(each.path);
    }
    return paths;
  }

  /// Returns the paths of all checkpoints.
  std::vector<std::string> All() const {
    const std::string run = directory_ + "/" + kRunName;
    return {run + "/shard-0/checkpoint-0-3", run + "/shard-0/checkpoint-0-20",
            run + "/shard-1/checkpoint-0-3", run + "/shard-1/checkpoint-0-20"};
  }

  const fs::path before_ = fs::current_path();
  const std::string directory_ = testing::TempDir() + "/checkpoint_listing_test";
  PosixDisk disk_;
};

TEST_F(CheckpointListingTest, FindsWhatIsInADirectoryOfRunsARunAShardAndACheckpoint) {
  const std::string run = directory_ + "/" + kRunName;

  EXPECT_EQ(PathsBelow(directory_), All());
  EXPECT_EQ(PathsBelow(run), All());
  EXPECT_THAT(PathsBelow(run + "/shard-1"), ElementsAre(All()[2], All()[3]));
  EXPECT_THAT(PathsBelow(run + "/shard-1/checkpoint-0-3"), ElementsAre(All()[2]));
}

TEST_F(CheckpointListingTest, KnowsTheParentsOfARelativePath) {
  fs::current_path(directory_ + "/" + kRunName + "/shard-1");
  EXPECT_THAT(PathsBelow("."), ElementsAre("./checkpoint-0-3", "./checkpoint-0-20"));
  EXPECT_THAT(PathsBelow("checkpoint-0-3"), ElementsAre("checkpoint-0-3"));
  fs::current_path("checkpoint-0-3");
  EXPECT_THAT(PathsBelow("."), ElementsAre("."));
  EXPECT_THAT(PathsBelow("../../shard-0/checkpoint-0-3"),
              ElementsAre("../../shard-0/checkpoint-0-3"));
}

TEST_F(CheckpointListingTest, PassesOverWhateverHasAnotherName) {
  const std::string run = directory_ + "/" + kRunName;
  fs::create_directory(directory_ + "/lost+found");
  fs::permissions(directory_ + "/lost+found", fs::perms::none);
  for (const char* name : {"/a-loop", "/shard-7"}) fs::create_symlink(run + name, run + name);
  fs::create_directories(run + "/shard-0/checkpoint-0-4.unfinished");

  EXPECT_EQ(PathsBelow(directory_), All());
}

TEST_F(CheckpointListingTest, ACheckpointOfAnotherRunOrShardIsOfNoUse) {
  const std::string run = directory_ + "/" + kRunName;
  Save(disk_, directory_, kRun + 1, 1, 3);
  fs::remove_all(run + "/shard-1");
  fs::rename(directory_ + "/00000000000000ac/shard-1", run + "/shard-1");
  fs::copy(run + "/shard-0", run + "/shard-2", fs::copy_options::recursive);

  const std::vector<ListedCheckpoint> listed = ListCheckpoints(disk_, run).value();

  ASSERT_EQ(listed.size(), 5u);
  EXPECT_TRUE(listed[1].state.ok());
  EXPECT_FALSE(listed[1].is_on_all_shards);
  EXPECT_EQ(listed[2].state,
            absl::DataLossError(run + "/shard-1/checkpoint-0-3: is the checkpoint checkpoint-0-3 "
                                      "of run 00000000000000ac, shard-1"));
  EXPECT_EQ(listed[4].state,
            absl::DataLossError(run + "/shard-2/checkpoint-0-20: is the checkpoint "
                                      "checkpoint-0-20 of run 00000000000000ab, shard-0"));
  EXPECT_TRUE(absl::IsNotFound(ChooseForExport(listed, std::nullopt).status()));
}

TEST(CheckpointListingFaultsTest, WhatCannotBeReadIsNamed) {
  SimulatedDisk disk;
  for (const uint32_t shard : {0u, 1u}) Save(disk, "/checkpoints", kRun, shard, 3);
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; ++number) {
    SCOPED_TRACE(testing::Message() << "call " << number);
    disk.FailCall(number);

    const absl::StatusOr<std::vector<ListedCheckpoint>> listed =
        ListCheckpoints(disk, "/checkpoints");

    has_failed = disk.has_failed();
    disk.EndFailures();
    absl::Status failure = listed.status();
    if (listed.ok()) {
      EXPECT_EQ(listed->size(), 2u);
      for (const ListedCheckpoint& each : *listed) failure.Update(each.state);
    }
    EXPECT_EQ(failure.ok(), !has_failed);
    if (!has_failed) continue;
    EXPECT_TRUE(absl::IsDataLoss(failure));
    EXPECT_THAT(std::string(failure.message()),
                AllOf(HasSubstr("/checkpoints"), HasSubstr("Input/output error")));
  }
}

}  // namespace
}  // namespace slipstream
