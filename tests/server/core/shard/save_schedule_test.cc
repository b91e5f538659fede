#include "server/core/shard/save_schedule.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

bool IsTime(const SaveSchedule& saves, uint64_t decided, bool is_round_empty = true) {
  return saves.IsTime(Version{decided}, is_round_empty, /*is_drained=*/false);
}

TEST(SaveScheduleTest, AnOrderWithoutVersionIsDueOnceTheRoundIsEmpty) {
  SaveSchedule saves;
  EXPECT_FALSE(IsTime(saves, 3));
  EXPECT_TRUE(saves.Order({.number = 1}, Version{3}));

  EXPECT_FALSE(IsTime(saves, 3, /*is_round_empty=*/false));
  EXPECT_TRUE(IsTime(saves, 3));

  saves.OnSaved(Version{3});
  EXPECT_FALSE(IsTime(saves, 4));
  EXPECT_FALSE(saves.Order({.number = 1}, Version{4}));
}

TEST(SaveScheduleTest, AnOrderWithAVersionIsDueWithThatOne) {
  SaveSchedule saves;
  EXPECT_TRUE(saves.Order({.number = 1, .version = Version{5}}, Version{3}));
  saves.OnDecided(Version{4});
  EXPECT_FALSE(IsTime(saves, 4));
  saves.OnDecided(Version{5});
  EXPECT_TRUE(IsTime(saves, 5));
}

TEST(SaveScheduleTest, AVersionIsSavedOnce) {
  SaveSchedule saves;
  saves.OnSaved(Version{3});
  EXPECT_TRUE(saves.Order({.number = 1}, Version{3}));

  EXPECT_FALSE(IsTime(saves, 3));
  EXPECT_TRUE(IsTime(saves, 4));
}

TEST(SaveScheduleTest, ASaveThatDidNotComeToTheDiskIsDueAgain) {
  SaveSchedule saves;
  saves.OnSaved(Version{3});
  SaveSchedule on_disk = saves;
  on_disk.EndProcess(Version{3});
  EXPECT_FALSE(IsTime(on_disk, 4));

  saves.EndProcess(Version{2});
  EXPECT_TRUE(IsTime(saves, 3));
}

}  // namespace
}  // namespace slipstream
