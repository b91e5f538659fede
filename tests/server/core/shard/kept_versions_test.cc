#include "server/core/shard/kept_versions.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

Stamp StampOf(uint64_t number) { return {.publisher = Incarnation{5}, .number = number}; }

/// Returns the versions of a shard that has made, and published, versions up to this one.
KeptVersions UpTo(uint64_t version) {
  KeptVersions versions;
  for (uint64_t made = 1; made <= version; ++made) {
    versions.Decide({.examples = 10 * made, .stamp = StampOf(made)});
    versions.Publish(Version{made}, /*kept_max=*/2);
  }
  return versions;
}

TEST(KeptVersionsTest, TheNewestPublishedVersionsAreKept) {
  const KeptVersions versions = UpTo(4);

  EXPECT_EQ(versions.oldest(), Version{3});
  EXPECT_EQ(versions.RecordOf(Version{3}).examples, 30u);
  EXPECT_EQ(versions.newest().examples, 40u);
  EXPECT_EQ(versions.FindKept(StampOf(4)), Version{4});
  EXPECT_EQ(versions.FindKept(StampOf(2)), std::nullopt);
  versions.CheckInvariants(/*kept_max=*/2);
}

TEST(KeptVersionsTest, AVersionIsFoundOnceItIsPublished) {
  KeptVersions versions = UpTo(2);
  versions.Decide({.stamp = StampOf(3)});

  EXPECT_EQ(versions.FindKept(StampOf(3)), std::nullopt);
  EXPECT_FALSE(versions.IsPast(StampOf(3)));
  EXPECT_TRUE(versions.IsPast(StampOf(1)));

  versions.Publish(Version{3}, /*kept_max=*/2);
  EXPECT_EQ(versions.FindKept(StampOf(3)), Version{3});
}

TEST(KeptVersionsTest, AProcessThatEndsTakesTheVersionsBeforeWithIt) {
  KeptVersions versions = UpTo(4);
  versions.EndProcess(/*oldest_kept=*/Version{4});

  EXPECT_EQ(versions.oldest(), Version{4});
  versions.CheckInvariants(/*kept_max=*/2);
}

TEST(KeptVersionsTest, ALaterGenerationBeginsWithTheVersionDecidedLast) {
  KeptVersions versions = UpTo(2);
  versions.Decide({.stamp = StampOf(3)});
  versions.BeginGeneration(Generation{1});

  EXPECT_EQ(versions.generation(), Generation{1});
  EXPECT_EQ(versions.generation_begin(), Version{3});
  EXPECT_EQ(versions.published(), Version{3});
  EXPECT_EQ(versions.Fault(), "");
}

}  // namespace
}  // namespace slipstream
