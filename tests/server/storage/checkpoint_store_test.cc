#include "server/storage/checkpoint_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/process/version.h"
#include "server/storage/log_segment.h"
#include "server/storage/posix_disk.h"
#include "tests/server/storage/checkpoint_fixture.h"
#include "tests/support/captured_log.h"
#include "tests/support/simulated_disk.h"

namespace slipstream {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckpointStoreTest : public testing::Test {
 protected:
  CheckpointStoreTest() { Open(); }

  void Open() {
    store_ = nullptr;  // It has the lock.
    auto opened = OpenStore(disk_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  void SaveAll(const std::vector<SavedVersion>& all) {
    for (const SavedVersion& saved : all) {
      ASSERT_TRUE(SaveContent(*store_, saved, Content::Of(Value(saved.version))).ok());
    }
  }

  std::vector<std::string> Names() {
    const std::vector<DiskEntry> entries = disk_.List(kDirectory).value();
    std::vector<std::string> names;
    for (const DiskEntry& entry : entries) {
      if (entry.name != kLockName) names.push_back(entry.name);
    }
    return names;
  }

  SimulatedDisk disk_;
  CapturedLog log_;
  std::unique_ptr<CheckpointStore> store_;
};

TEST_F(CheckpointStoreTest, GivesBackWhatWasSavedAlsoToALaterProcess) {
  SaveAll({Saved(0, 0), Saved(0, 12, 3)});

  disk_.Crash();
  Open();

  EXPECT_THAT(store_->saved(), ElementsAre(Saved(0, 0), Saved(0, 12, 3)));
  EXPECT_EQ(LoadContent(*store_, Saved(0, 0)).value(), Content::Of(0));
  EXPECT_EQ(LoadContent(*store_, Saved(0, 12)).value(), Content::Of(12));
  EXPECT_THAT(Names(), ElementsAre("checkpoint-0-0", "checkpoint-0-12"));
}

TEST_F(CheckpointStoreTest, TellsHowLargeACheckpointIs) {
  EXPECT_EQ(store_->BytesOf(Saved(0, 1)), std::nullopt);
  SaveAll({Saved(0, 1)});
  const std::optional<uint64_t> bytes = store_->BytesOf(Saved(0, 1));

  Open();

  EXPECT_EQ(store_->BytesOf(Saved(0, 1)), bytes);
  const std::vector<DiskEntry> entries =
      disk_.List(std::string(kDirectory) + "/checkpoint-0-1").value();
  uint64_t on_disk = 0;
  for (const DiskEntry& entry : entries) {
    if (entry.name != kManifestFile) on_disk += entry.bytes;
  }
  EXPECT_EQ(bytes, on_disk);
}

TEST_F(CheckpointStoreTest, ASecondSaveOfAVersionTakesThePlaceOfTheFirst) {
  SaveAll({Saved(0, 0), Saved(0, 1)});

  ASSERT_TRUE(SaveContent(*store_, Saved(0, 0, 2), Content::Of(99), 7).ok());
  disk_.Crash();
  Open();

  EXPECT_THAT(store_->saved(), ElementsAre(Saved(0, 0, 2), Saved(0, 1)));
  EXPECT_EQ(LoadContent(*store_, Saved(0, 0)).value(), Content::Of(99));
  EXPECT_EQ(store_->LogOf(Saved(0, 0)), 7u);
  EXPECT_THAT(Names(), ElementsAre("checkpoint-0-0", "checkpoint-0-1"));
}

TEST_F(CheckpointStoreTest, KnowsTheSegmentOfTheLogThatBeginsWithACheckpoint) {
  SaveAll({Saved(0, 1)});
  ASSERT_TRUE(SaveContent(*store_, Saved(0, 2), Content::Of(2), 5).ok());
  EXPECT_EQ(store_->LogOf(Saved(0, 2)), 5u);

  Open();

  EXPECT_EQ(store_->LogOf(Saved(0, 1)), 0u);
  EXPECT_EQ(store_->LogOf(Saved(0, 2)), 5u);
  EXPECT_EQ(store_->LogOf(Saved(0, 3)), 0u);
  EXPECT_EQ(store_->directory(), kDirectory);
  EXPECT_EQ(&store_->disk(), &disk_);
}

TEST_F(CheckpointStoreTest, KeepsTheLogFromTheOldestCheckpointOnThatItOffers) {
  for (uint64_t segment = 1; segment <= 6; ++segment) {
    ASSERT_TRUE(LogSegmentWriter::Create(disk_, kDirectory, segment).ok());
  }
  for (const uint64_t version : {1, 2, 3, 4}) {
    ASSERT_TRUE(SaveContent(*store_, Saved(0, version), Content::Of(version), version + 1).ok());
  }

  ASSERT_TRUE(store_->Prune(4, std::nullopt).ok());
  EXPECT_THAT(ListSegments(disk_, kDirectory).value(), ElementsAre(2, 3, 4, 5, 6));

  ASSERT_TRUE(store_->Prune(2, Saved(0, 2)).ok());
  EXPECT_THAT(ListSegments(disk_, kDirectory).value(), ElementsAre(3, 4, 5, 6));

  // A shard never goes on from a damaged checkpoint, so that needs no log.
  disk_.BytesOf(std::string(kDirectory) + "/checkpoint-0-2/state.bin")[0] ^= 1;
  EXPECT_FALSE(LoadState(*store_, Saved(0, 2)).ok());
  ASSERT_TRUE(store_->Prune(3, std::nullopt).ok());
  EXPECT_THAT(ListSegments(disk_, kDirectory).value(), ElementsAre(4, 5, 6));

  disk_.BytesOf(std::string(kDirectory) + "/checkpoint-0-4/state.bin")[0] ^= 1;
  EXPECT_FALSE(LoadState(*store_, Saved(0, 4)).ok());
  ASSERT_TRUE(store_->Prune(1, std::nullopt).ok());
  EXPECT_THAT(store_->saved(), ElementsAre(Saved(0, 3)));
  EXPECT_THAT(ListSegments(disk_, kDirectory).value(), ElementsAre(4, 5, 6));
}

TEST_F(CheckpointStoreTest, CheckpointsWithoutALogRemoveNoSegment) {
  ASSERT_TRUE(LogSegmentWriter::Create(disk_, kDirectory, 1).ok());
  SaveAll({Saved(0, 1), Saved(0, 2)});

  ASSERT_TRUE(store_->Prune(1, std::nullopt).ok());

  EXPECT_THAT(ListSegments(disk_, kDirectory).value(), ElementsAre(1));
}

TEST_F(CheckpointStoreTest, OnlyOneProcessHasADirectory) {
  const absl::Status second = OpenStore(disk_).status();

  EXPECT_EQ(second.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(second.message()), HasSubstr(kDirectory));
  EXPECT_TRUE(CheckpointStore::Open(disk_, "/checkpoints", kRun, ShardId{2}).ok());
  EXPECT_TRUE(CheckpointStore::Open(disk_, "/checkpoints", kRun + 1, kShard).ok());
  Open();
}

TEST_F(CheckpointStoreTest, KeepsTheNewestAndWhatIsSafe) {
  SaveAll({Saved(0, 5), Saved(0, 9), Saved(1, 7), Saved(1, 8), Saved(2, 6)});

  ASSERT_TRUE(store_->Prune(2, Saved(0, 9)).ok());
  EXPECT_THAT(store_->saved(), ElementsAre(Saved(0, 9), Saved(1, 7), Saved(1, 8), Saved(2, 6)));

  ASSERT_TRUE(store_->Prune(3, std::nullopt).ok());
  EXPECT_THAT(store_->saved(), ElementsAre(Saved(1, 7), Saved(1, 8), Saved(2, 6)));

  ASSERT_TRUE(store_->Prune(2, Saved(2, 6)).ok());
  EXPECT_THAT(store_->saved(), ElementsAre(Saved(1, 8), Saved(2, 6)));
  EXPECT_THAT(Names(), ElementsAre("checkpoint-1-8", "checkpoint-2-6"));
  disk_.Crash();
  Open();
  EXPECT_THAT(store_->saved(), ElementsAre(Saved(1, 8), Saved(2, 6)));
}

TEST_F(CheckpointStoreTest, RemovesWhateverAnOldCheckpointHas) {
  SaveAll({Saved(0, 1), Saved(0, 2)});
  const std::string notes = std::string(kDirectory) + "/checkpoint-0-1/notes/of";
  ASSERT_TRUE(disk_.MakeDirectories(notes).ok());
  ASSERT_TRUE(disk_.Create(notes + "/today").ok());

  ASSERT_TRUE(store_->Prune(1, std::nullopt).ok());

  EXPECT_THAT(Names(), ElementsAre("checkpoint-0-2"));
}

TEST_F(CheckpointStoreTest, RemovesALinkAndNotWhatItLeadsTo) {
  const std::string directory = testing::TempDir() + "/checkpoint_store_test";
  std::filesystem::remove_all(directory);
  PosixDisk disk;
  store_ = CheckpointStore::Open(disk, directory, kRun, kShard).value();
  SaveAll({Saved(0, 1), Saved(0, 2)});
  std::filesystem::create_directories(directory + "/elsewhere/data");
  std::filesystem::create_symlink(directory + "/elsewhere",
                                  store_->directory() + "/checkpoint-0-1/link");

  ASSERT_TRUE(store_->Prune(1, std::nullopt).ok());

  EXPECT_FALSE(std::filesystem::exists(store_->directory() + "/checkpoint-0-1.unfinished"));
  EXPECT_TRUE(std::filesystem::exists(directory + "/elsewhere/data"));
  std::filesystem::remove_all(directory);
}

TEST_F(CheckpointStoreTest, AFileThatDoesNotGoKeepsNothingElseFromBeingDone) {
  for (const uint64_t number : {1, 2, 3}) {
    ASSERT_TRUE(LogSegmentWriter::Create(disk_, kDirectory, number).ok());
    ASSERT_TRUE(SaveContent(*store_, Saved(0, number), Content::Of(number), number).ok());
  }
  ASSERT_TRUE(disk_.Create(std::string(kDirectory) + "/checkpoint-0-1/.nfs1").ok());
  disk_.KeepFiles(".nfs1");

  const std::string left = std::string(kDirectory) + "/checkpoint-0-1.unfinished";
  for ([[maybe_unused]] const char* time : {"first", "second"}) {
    EXPECT_EQ(store_->Prune(1, std::nullopt), absl::DataLossError(left + "/.nfs1: in use"));
    EXPECT_THAT(Names(), ElementsAre("checkpoint-0-1.unfinished", "checkpoint-0-3", "log-3"));
  }

  EXPECT_EQ(disk_.List(left).value().size(), 1u);
  ASSERT_TRUE(SaveContent(*store_, Saved(0, 4), Content::Of(4), 3).ok());
  Open();
  EXPECT_THAT(store_->saved(), ElementsAre(Saved(0, 3), Saved(0, 4)));
  EXPECT_EQ(log_.Count(left + "/.nfs1: in use"), 1);
}

TEST_F(CheckpointStoreTest, RemovesWhatAGenerationLeavesBehindThatBeginsEarlier) {
  SaveAll({Saved(0, 5), Saved(0, 9), Saved(1, 7)});

  ASSERT_TRUE(store_->RemoveAfter(Saved(0, 5)).ok());

  EXPECT_THAT(store_->saved(), ElementsAre(Saved(0, 5)));
  EXPECT_THAT(Names(), ElementsAre("checkpoint-0-5"));
  EXPECT_EQ(LoadState(*store_, Saved(0, 9)).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CheckpointStoreTest, DoesNotOfferADamagedCheckpointAndReplacesIt) {
  SaveAll({Saved(0, 1), Saved(0, 2), Saved(0, 3)});
  const std::string folder = std::string(kDirectory) + "/checkpoint-0-";
  disk_.BytesOf(folder + "1/arrays.bin").pop_back();
  disk_.BytesOf(folder + "2/MANIFEST")[30] ^= 1;
  disk_.BytesOf(folder + "3/weights.safetensors")[5000] ^= 1;

  Open();

  // A wrong byte is found when the file is read.
  EXPECT_THAT(store_->saved(), ElementsAre(Saved(0, 3)));
  EXPECT_EQ(log_.Count("checkpoint-0-1/arrays.bin: truncated: it ends at byte 19999"), 1);
  EXPECT_EQ(log_.Count("checkpoint-0-2/MANIFEST: damaged"), 1);
  EXPECT_EQ(LoadContent(*store_, Saved(0, 3)).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(store_->saved(), IsEmpty());
  SaveAll({Saved(0, 1), Saved(0, 2), Saved(0, 3)});
  EXPECT_THAT(store_->saved(), ElementsAre(Saved(0, 1), Saved(0, 2), Saved(0, 3)));
  for (const uint64_t version : {1, 2, 3}) {
    EXPECT_EQ(LoadContent(*store_, Saved(0, version)).value(), Content::Of(version));
  }
}

TEST_F(CheckpointStoreTest, ACheckpointFromElsewhereIsNotOffered) {
  SaveAll({Saved(0, 1)});
  ASSERT_TRUE(disk_
                  .Rename(std::string(kDirectory) + "/checkpoint-0-1",
                          std::string(kDirectory) + "/checkpoint-0-2")
                  .ok());

  Open();

  EXPECT_THAT(store_->saved(), IsEmpty());
  EXPECT_EQ(log_.Count("checkpoint-0-2: is the checkpoint checkpoint-0-1 of run "), 1);
}

TEST_F(CheckpointStoreTest, NamesTheLaterReleaseWhoseStateItCannotRead) {
  SaveAll({Saved(0, 1)});
  std::string& text = disk_.BytesOf(std::string(kDirectory) + "/checkpoint-0-1/MANIFEST");
  CheckpointManifest manifest = ParseManifest(text).value();
  manifest.format = kDurableFormat + 1;
  manifest.program = "9.0.0";
  text = EncodeManifest(manifest);
  std::vector<float> weights(kRange.size());

  const absl::Status refused = LoadState(*store_, Saved(0, 1)).status();
  const LoadedArray array = {.name = "weights", .values = weights};

  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("checkpoint-0-1: slipstream 9.0.0 has written it"),
                    HasSubstr("weights.safetensors can be read")));
  EXPECT_TRUE(LoadArrays(*store_, Saved(0, 1), {&array, 1}).ok());
  EXPECT_EQ(weights, Content::Of(1).weights);
  store_ = nullptr;
  EXPECT_EQ(OpenStore(disk_).status(), refused) << "an older checkpoint is none to go on from";
}

TEST_F(CheckpointStoreTest, NamesAnArrayThatIsNotThere) {
  SaveAll({Saved(0, 1)});
  std::vector<float> values(kRange.size());
  const auto load = [&](const char* name, size_t size) {
    const LoadedArray array = {.name = name, .values = std::span(values).first(size)};
    return LoadArrays(*store_, Saved(0, 1), {&array, 1});
  };

  EXPECT_TRUE(load("state0", kRange.size()).ok());
  EXPECT_EQ(load("state1", kRange.size()).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(load("state0", 7).message()),
              HasSubstr("checkpoint-0-1: has no array \"state0\" of 7 values"));
  EXPECT_THAT(store_->saved(), ElementsAre(Saved(0, 1))) << "it is not damaged";
}

}  // namespace
}  // namespace slipstream
