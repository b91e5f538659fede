#include "server/core/coordinator/servers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace slipstream {
namespace {

// A call that its server gave up may still be on its way when the next one is answered. If the
// version of shard 0 went back with it, so would the version that hardsync drains to, which other
// shards have passed.
TEST(ServersTest, AReportThatComesLateTakesNothingBack) {
  Servers servers(1, absl::Seconds(5));
  const ServerReport early = {.instance = 7, .number = 1, .address = "a:1", .orders_seen = 3};
  ServerReport late = early;
  late.number = 2;
  late.version = Version{9};
  late.drained = true;
  absl::Time now = absl::UnixEpoch();
  ASSERT_TRUE(servers.Record(late, now).ok());

  now += absl::Seconds(1);
  ASSERT_TRUE(servers.Record(early, now).ok());

  EXPECT_EQ(servers.servers()[0]->report.version, Version{9});
  EXPECT_TRUE(servers.AllDrained(3));
  EXPECT_EQ(servers.servers()[0]->last_heard, now);
}

TEST(ServersTest, NobodyHasMeasuredVersionsThatNoShardHas) {
  Servers servers(2, absl::Seconds(5));
  for (const uint32_t shard : {0, 1}) {
    const ServerReport report = {.shard = ShardId{shard},
                                 .instance = 7,
                                 .address = "a:1",
                                 .initialized = true,
                                 .version = Version{9 + shard}};
    ASSERT_TRUE(servers.Record(report, absl::UnixEpoch()).ok());
  }
  const auto why_not = [&servers](const std::vector<Version>& versions, bool has_ended) {
    return std::string(servers.CheckMeasured(versions, has_ended).message());
  };

  EXPECT_EQ(why_not({Version{9}, Version{10}}, true), "");
  EXPECT_EQ(why_not({Version{10}, Version{10}}, true), "") << "the measurer closed the open round";
  EXPECT_EQ(why_not({Version{11}, Version{10}}, true),
            "versions: 11 of shard 0, whose newest known version is 9");
  EXPECT_EQ(why_not({Version{9}}, true), "versions: one for each of 2 shards, not 1");
  EXPECT_EQ(why_not({Version{9}, Version{9}, Version{9}}, false),
            "versions: one for each of 2 shards, not 3");
  EXPECT_EQ(why_not({Version{12}, Version{10}}, false), "") << "made since its report";
  EXPECT_NE(why_not({Version{uint64_t{1} << 60}, Version{10}}, false), "");
}

/// A coordinator that was restarted knows what its journal had, and not what came after it.
TEST(ServersTest, AVersionThatARestoredCoordinatorHasNotHeardOfMayHaveBeenMeasured) {
  Servers servers(1, absl::Seconds(5));
  const ServerReport report = {.instance = 7, .address = "a:1", .initialized = true};
  ASSERT_TRUE(servers.Record(report, absl::UnixEpoch()).ok());
  servers.OnRestored(absl::UnixEpoch());

  const std::vector<Version> versions = {Version{3}};
  EXPECT_TRUE(servers.CheckMeasured(versions, /*has_ended=*/true).ok());
}

TEST(ServersTest, MoreCheckpointsThanAServerMayHaveAreRefused) {
  Servers servers(1, absl::Seconds(5));
  ServerReport report = {.instance = 7, .address = "a:1"};
  report.saved.resize(Servers::kSavedMax);
  EXPECT_TRUE(servers.Record(report, absl::UnixEpoch()).ok());

  report.saved.emplace_back();
  EXPECT_TRUE(absl::IsInvalidArgument(servers.Record(report, absl::UnixEpoch()).status()));
  report.saved = {{.generation = Generation{Value(Servers::kGenerationMax) + 1}}};
  EXPECT_TRUE(absl::IsInvalidArgument(servers.Record(report, absl::UnixEpoch()).status()));
}

TEST(ServersTest, AnotherProcessMayBringAnotherAddressOnceItsPredecessorIsSilent) {
  Servers servers(2, absl::Seconds(5));
  ServerReport report = {.shard = ShardId{1}, .instance = 7, .address = "a:1"};
  absl::Time now = absl::UnixEpoch();
  ASSERT_TRUE(servers.Record({.instance = 6, .address = "b:1"}, now).ok());
  ASSERT_TRUE(servers.Record(report, now).ok());
  report.instance = 8;
  report.address = "a:2";
  now += absl::Seconds(5);
  EXPECT_TRUE(absl::IsAlreadyExists(servers.Record(report, now).status()));
  EXPECT_FALSE(servers.may_have_moved());

  now += absl::Milliseconds(1);
  ASSERT_TRUE(servers.Record(report, now).ok());

  EXPECT_TRUE(servers.may_have_moved());
  EXPECT_EQ(servers.Addresses(), (std::vector<std::string>{"b:1", "a:2"}));
  EXPECT_EQ(servers.AddressOf(ShardId{1}), "a:2");
  EXPECT_EQ(servers.AddressOf(ShardId{2}), "");
}

TEST(ServersTest, AnotherProcessAtTheSameAddressIsNoMove) {
  Servers servers(1, absl::Seconds(5));
  absl::Time now = absl::UnixEpoch();
  ASSERT_TRUE(servers.Record({.instance = 7, .address = "a:1"}, now).ok());

  now += absl::Seconds(6);
  ASSERT_TRUE(servers.Record({.instance = 8, .address = "a:1"}, now).ok());

  EXPECT_FALSE(servers.may_have_moved());
}

// A restored coordinator does not know which addresses its members were told.
TEST(ServersTest, AfterARestartOfTheCoordinatorAnyServerMayHaveMoved) {
  Servers servers(1, absl::Seconds(5));
  servers.OnRestored(absl::UnixEpoch());
  EXPECT_FALSE(servers.may_have_moved()) << "no member was told any";
  ASSERT_TRUE(servers.Record({.instance = 7, .address = "a:1"}, absl::UnixEpoch()).ok());

  servers.OnRestored(absl::UnixEpoch());

  EXPECT_TRUE(servers.may_have_moved());
}

}  // namespace
}  // namespace slipstream
