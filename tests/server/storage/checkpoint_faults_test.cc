#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/server/storage/checkpoint_fixture.h"
#include "tests/server/storage/flipped_bits.h"
#include "tests/support/simulated_disk.h"

namespace slipstream {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

const SavedVersion kOld = Saved(0, 1);
const SavedVersion kNew = Saved(0, 2);

/// A disk with one checkpoint.
struct Scene {
  Scene() : store(OpenStore(disk).value()) {
    EXPECT_TRUE(SaveContent(*store, kOld, Content::Of(1)).ok());
  }

  std::vector<std::string> Names() {
    const std::vector<DiskEntry> entries = disk.List(kDirectory).value();
    std::vector<std::string> names;
    for (const DiskEntry& entry : entries) names.push_back(entry.name);
    return names;
  }

  /// Expects that the store has exactly the saved checkpoints, each whole, and nothing else.
  void ExpectOnlySaved() {
    std::vector<std::string> names = {kLockName};
    for (const SavedVersion& saved : store->saved()) {
      names.push_back(CheckpointDirectoryName({saved.generation, saved.version}));
      EXPECT_EQ(LoadContent(*store, saved).value(), Content::Of(Value(saved.version)));
    }
    EXPECT_EQ(Names(), names);
  }

  /// The machine stops, and the server is started again.
  void Restart(std::optional<uint64_t> seed) {
    store = nullptr;  // It has the lock.
    disk.Crash(seed);
    store = OpenStore(disk).value();
  }

  SimulatedDisk disk;
  std::unique_ptr<CheckpointStore> store;
};

/// Calls `check` with seeds of crashes; the first is the one that loses all that was not synced.
template <typename Check>
void ForSeeds(const Check& check) {
  check(std::optional<uint64_t>());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    check(std::optional(seed));
  }
}

/// Lets the machine stop at each call of `act` in turn.
template <typename Act, typename Check>
void CrashAtEveryCall(const Act& act, const Check& check) {
  ForSeeds([&](std::optional<uint64_t> seed) {
    bool has_failed = true;
    for (uint64_t number = 1; has_failed; ++number) {
      SCOPED_TRACE(testing::Message() << "call " << number);
      Scene scene;
      scene.disk.StopAtCall(number);
      const absl::Status acted = act(*scene.store);
      has_failed = scene.disk.has_failed();
      EXPECT_TRUE(acted.ok() || has_failed);

      scene.Restart(seed);

      check(scene, acted.ok());
      scene.ExpectOnlySaved();
    }
  });
}

TEST(CheckpointFaultsTest, ACrashAtAnyCallOfASaveLeavesTheOldOrTheNewCheckpoint) {
  const auto save = [](CheckpointStore& store) { return SaveContent(store, kNew, Content::Of(2)); };
  CrashAtEveryCall(save, [](Scene& scene, bool is_saved) {
    if (is_saved) {
      EXPECT_THAT(scene.store->saved(), ElementsAre(kOld, kNew));
    } else {
      EXPECT_THAT(scene.store->saved(), AnyOf(ElementsAre(kOld), ElementsAre(kOld, kNew)));
    }
  });
}

TEST(CheckpointFaultsTest, ACrashAtAnyCallOfASaveThatReplacesLeavesOneOfThemOrNone) {
  const auto save_twice = [](CheckpointStore& store) {
    absl::Status saved = SaveContent(store, kNew, Content::Of(3));
    return saved.ok() ? SaveContent(store, kNew, Content::Of(4), 7) : saved;
  };
  CrashAtEveryCall(save_twice, [](Scene& scene, bool is_saved) {
    const bool is_second = scene.store->LogOf(kNew) == 7;
    EXPECT_TRUE(is_second || !is_saved);
    if (scene.store->saved().size() == 2) {
      EXPECT_EQ(LoadContent(*scene.store, kNew).value(), Content::Of(is_second ? 4 : 3));
    }
    // Whatever is left is not in the way.
    EXPECT_TRUE(SaveContent(*scene.store, kNew, Content::Of(2)).ok());
    EXPECT_THAT(scene.store->saved(), ElementsAre(kOld, kNew));
  });
}

TEST(CheckpointFaultsTest, AFailureOfAnyCallOfASaveThatReplacesLeavesTheOtherCheckpoints) {
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; ++number) {
    SCOPED_TRACE(testing::Message() << "call " << number);
    Scene scene;
    ASSERT_TRUE(SaveContent(*scene.store, kNew, Content::Of(2)).ok());
    scene.disk.FailCall(number);
    const absl::Status saved = SaveContent(*scene.store, kNew, Content::Of(3));
    has_failed = scene.disk.has_failed();
    scene.disk.FailCall(1'000'000);  // The disk works again.

    EXPECT_NE(saved.ok(), has_failed);
    if (saved.ok()) {
      EXPECT_EQ(LoadContent(*scene.store, kNew).value(), Content::Of(3));
    } else {
      scene.ExpectOnlySaved();
    }
    ASSERT_TRUE(SaveContent(*scene.store, kNew, Content::Of(2)).ok());
    EXPECT_THAT(scene.store->saved(), ElementsAre(kOld, kNew));
    scene.ExpectOnlySaved();
    scene.Restart(std::nullopt);
    scene.ExpectOnlySaved();
  }
}

TEST(CheckpointFaultsTest, ACrashAtAnyCallOfAPruneLeavesWholeCheckpoints) {
  const auto save_and_prune = [](CheckpointStore& store) {
    absl::Status saved = SaveContent(store, kNew, Content::Of(2));
    return saved.ok() ? store.Prune(1, std::nullopt) : saved;
  };
  CrashAtEveryCall(save_and_prune, [](Scene& scene, bool is_pruned) {
    if (is_pruned) {
      EXPECT_THAT(scene.store->saved(), ElementsAre(kNew));
    } else {
      EXPECT_THAT(scene.store->saved(),
                  AnyOf(ElementsAre(kOld), ElementsAre(kOld, kNew), ElementsAre(kNew)));
    }
  });
}

TEST(CheckpointFaultsTest, AFailureOfAnyCallFailsTheSaveAndTheNextOneWorks) {
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; ++number) {
    SCOPED_TRACE(testing::Message() << "call " << number);
    Scene scene;
    scene.disk.FailCall(number);
    const absl::Status saved = SaveContent(*scene.store, kNew, Content::Of(2));
    has_failed = scene.disk.has_failed();
    if (!has_failed) break;

    EXPECT_EQ(saved.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(saved.message()),
                AllOf(HasSubstr(kDirectory), HasSubstr("Input/output error")));
    EXPECT_THAT(scene.store->saved(), ElementsAre(kOld));
    scene.ExpectOnlySaved();
    EXPECT_TRUE(SaveContent(*scene.store, kNew, Content::Of(2)).ok());
    EXPECT_THAT(scene.store->saved(), ElementsAre(kOld, kNew));
    scene.Restart(std::nullopt);
    EXPECT_THAT(scene.store->saved(), ElementsAre(kOld, kNew));
    scene.ExpectOnlySaved();
  }
}

TEST(CheckpointFaultsTest, ADiskThatIsAwayForAWhileLeavesNothingInTheWay) {
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; ++number) {
    SCOPED_TRACE(testing::Message() << "from call " << number << " on");
    Scene scene;
    scene.disk.StopAtCall(number);
    const absl::Status first = SaveContent(*scene.store, kNew, Content::Of(2));
    has_failed = scene.disk.has_failed();
    EXPECT_EQ(first.ok(), !has_failed);

    scene.disk.StopAtCall(1'000'000);  // The disk is back, and the process has not ended.
    ASSERT_TRUE(SaveContent(*scene.store, kNew, Content::Of(2)).ok());

    EXPECT_THAT(scene.store->saved(), ElementsAre(kOld, kNew));
    scene.ExpectOnlySaved();
  }
}

TEST(CheckpointFaultsTest, ADiskThatIsAwayForAWhileLetsALaterSaveReplace) {
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; ++number) {
    SCOPED_TRACE(testing::Message() << "from call " << number << " on");
    Scene scene;
    scene.disk.StopAtCall(number);
    (void)SaveContent(*scene.store, kOld, Content::Of(3));
    has_failed = scene.disk.has_failed();

    scene.disk.StopAtCall(1'000'000);  // The disk is back, and the process has not ended.
    ASSERT_TRUE(SaveContent(*scene.store, kOld, Content::Of(1)).ok());

    EXPECT_THAT(scene.store->saved(), ElementsAre(kOld));
    scene.ExpectOnlySaved();
  }
}

TEST(CheckpointFaultsTest, ACrashAfterTheDiskWasAwayLeavesNoPartOfACheckpoint) {
  const auto replace = [](Scene& scene, uint64_t stop) {
    scene.disk.StopAtCall(stop);
    return SaveContent(*scene.store, kOld, Content::Of(3), 7);
  };
  for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(), {0}, {1}, {2}, {3}}) {
    // The first calls of the second save put away what the first one has left.
    for (uint64_t first = 1; !replace(*std::make_unique<Scene>(), first).ok(); ++first) {
      for (uint64_t second = 1; second < 10; ++second) {
        SCOPED_TRACE(testing::Message() << "calls " << first << " and " << second);
        Scene scene;
        (void)replace(scene, first);
        (void)replace(scene, second);

        scene.Restart(seed);

        ASSERT_EQ(scene.Names().size(), 1 + scene.store->saved().size());  // It has the lock, too.
        if (scene.store->saved().empty()) continue;
        const bool is_new = scene.store->LogOf(kOld) == 7;
        ASSERT_EQ(LoadContent(*scene.store, kOld).value(), Content::Of(is_new ? 3 : 1));
      }
    }
  }
}

TEST(CheckpointFaultsTest, AFullDiskFailsTheSaveAndGivesItsSpaceBack) {
  const uint64_t whole = Scene().disk.BytesUsed();
  for (const uint64_t room : {uint64_t{0}, uint64_t{10}, whole / 4, whole / 2, whole - 1}) {
    SCOPED_TRACE(testing::Message() << room << " bytes of room");
    Scene scene;
    scene.disk.SetCapacity(whole + room);
    const absl::Status full = SaveContent(*scene.store, kNew, Content::Of(2));

    EXPECT_EQ(full.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(full.message()),
                AllOf(HasSubstr("checkpoint-0-2"), HasSubstr("No space left on device")));
    EXPECT_THAT(scene.store->saved(), ElementsAre(kOld));
    scene.ExpectOnlySaved();
    scene.disk.SetCapacity(2 * whole);
    EXPECT_TRUE(SaveContent(*scene.store, kNew, Content::Of(2)).ok());
    scene.ExpectOnlySaved();
  }
}

/// Damages one file of a checkpoint of about 64 KiB.
class CheckpointDamageTest : public testing::TestWithParam<const char*> {
 protected:
  std::string& bytes() {
    return scene_.disk.BytesOf(std::string(kDirectory) + "/checkpoint-0-1/" + GetParam());
  }

  /// Loads what the file holds.
  absl::Status Load() {
    if (std::string_view(GetParam()) == kWeightsFile) return Load("weights");
    if (std::string_view(GetParam()) == kArraysFile) return Load("state0");
    return LoadState(*scene_.store, kOld).status();
  }

  /// Returns whether loading fails, and names the file and the place.
  bool IsRefused() {
    const absl::Status refused = Load();
    const std::string_view message(refused.message().data(), refused.message().size());
    return absl::IsDataLoss(refused) && message.find(" byte") != message.npos &&
           message.find(std::string("checkpoint-0-1/") + GetParam() + ": ") != message.npos;
  }

 private:
  absl::Status Load(const char* name) {
    const LoadedArray array = {.name = name, .values = values_};
    return LoadArrays(*scene_.store, kOld, {&array, 1});
  }

  Scene scene_;
  std::vector<float> values_ = std::vector<float>(kRange.size());
};

TEST_P(CheckpointDamageTest, EveryTruncationIsRefused) {
  const std::string whole = bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    bytes().resize(size);
    ASSERT_TRUE(IsRefused()) << size << " bytes are left";
    bytes() = whole;
  }
  bytes() += '\0';
  EXPECT_TRUE(IsRefused()) << "there is one byte more";
  bytes() = whole;
  EXPECT_TRUE(Load().ok());
}

TEST_P(CheckpointDamageTest, EveryBitThatIsFlippedIsFound) {
  std::string& all = bytes();
  for (size_t bit = 0; bit < 8 * all.size(); bit += kFlippedBitStep) {
    const auto mask = static_cast<char>(1 << (bit % 8));
    all[bit / 8] ^= mask;
    ASSERT_TRUE(IsRefused()) << "bit " << bit;
    all[bit / 8] ^= mask;
  }
  EXPECT_TRUE(Load().ok());
}

INSTANTIATE_TEST_SUITE_P(Files, CheckpointDamageTest,
                         testing::Values(kWeightsFile, kArraysFile, kStateFile, kManifestFile),
                         [](const auto& param) {
                           const std::string_view name = param.param;
                           return std::string(name.substr(0, name.find('.')));
                         });

}  // namespace
}  // namespace slipstream
