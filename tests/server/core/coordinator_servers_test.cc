#include "server/core/coordinator_servers.h"

#include <gtest/gtest.h>

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

TEST(ServersTest, MoreCheckpointsThanAServerMayHaveAreRefused) {
  Servers servers(1, absl::Seconds(5));
  ServerReport report = {.instance = 7, .address = "a:1"};
  report.saved.resize(Servers::kSavedMax);
  EXPECT_TRUE(servers.Record(report, absl::UnixEpoch()).ok());

  report.saved.emplace_back();
  EXPECT_TRUE(absl::IsInvalidArgument(servers.Record(report, absl::UnixEpoch()).status()));
  report.saved = {{.life = Life{Value(Servers::kLifeMax) + 1}}};
  EXPECT_TRUE(absl::IsInvalidArgument(servers.Record(report, absl::UnixEpoch()).status()));
}

}  // namespace
}  // namespace slipstream
