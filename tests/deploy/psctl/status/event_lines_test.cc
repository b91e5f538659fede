#include "deploy/psctl/status/event_lines.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/deploy/psctl/example_status.h"

namespace slipstream {
namespace {

TEST(EventLinesTest, EachEventIsALineOnceAndGapsAreCounted) {
  EventLines lines(/*is_json=*/false, absl::FixedTimeZone(3600));
  v1::RunStatus status = ExampleStatus();
  *status.add_events() = ExampleEvent(1, "server", "server synced shard=0");
  *status.add_events() = ExampleEvent(4, "aggregator", "aggregator replaced");
  status.mutable_events(1)->set_is_warning(true);

  EXPECT_EQ(lines.Next(status),
            "2023-11-14 23:13:20  server      server synced shard=0\n"
            "... 2 events that are not kept any more\n"
            "2023-11-14 23:13:20  aggregator  ! aggregator replaced\n");
  EXPECT_EQ(lines.Next(status), "");

  *status.add_events() = ExampleEvent(5, "phase", "next");
  EXPECT_EQ(lines.Next(status), "2023-11-14 23:13:20  phase       next\n");
}

TEST(EventLinesTest, AnotherRunBeginsFromOne) {
  EventLines lines(/*is_json=*/true);
  v1::RunStatus status = ExampleStatus();
  *status.add_events() = ExampleEvent(9, "phase", "the end");
  lines.Next(status);

  status.set_run(status.run() + 1);
  *status.mutable_events(0) = ExampleEvent(2, "phase", "the begin");

  EXPECT_EQ(lines.Next(status),
            "{\"missed\":1}\n"
            "{\"number\":2,\"time_ms\":1700000000250,\"kind\":\"phase\",\"is_warning\":false,"
            "\"text\":\"the begin\",\"worker\":null,\"shard\":null}\n");
}

TEST(EventLinesTest, NoTextOfAPeerReachesTheTerminalRaw) {
  EventLines lines(/*is_json=*/false);
  v1::RunStatus status = ExampleStatus();
  *status.add_events() = ExampleEvent(1, "worker", "worker left reason=\"\x1b[2J\n\"");

  const std::string text = lines.Next(status);

  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

}  // namespace
}  // namespace slipstream
