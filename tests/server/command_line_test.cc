#include "server/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace slipstream {
namespace {

using testing::HasSubstr;

std::variant<CommandLine, int> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ps_server");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

/// Returns the error output for arguments that are wrong usage.
std::string Refusal(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"--config", "run.yaml"});
  testing::internal::CaptureStderr();
  const std::variant<CommandLine, int> parsed = Parse(std::move(arguments));
  std::string said = testing::internal::GetCapturedStderr();
  const int* code = std::get_if<int>(&parsed);
  EXPECT_TRUE(code != nullptr && *code == 2) << said;
  return said;
}

TEST(CommandLineTest, TakesEveryOption) {
  const auto parsed =
      Parse({"--config", "run.yaml", "--shard", "2", "--listen", "localhost:0", "--port-file", "p",
             "--coordinator", "localhost:7", "--set", "seed=3", "--set",
             "cluster.servers=localhost:1,localhost:2", "--log-level", "debug"});

  const auto* line = std::get_if<CommandLine>(&parsed);
  ASSERT_NE(line, nullptr);
  EXPECT_EQ(line->config, "run.yaml");
  EXPECT_EQ(line->shard, 2u);
  EXPECT_EQ(line->listen, "localhost:0");
  EXPECT_EQ(line->port_file, "p");
  EXPECT_EQ(line->coordinator, "localhost:7");
  EXPECT_EQ(line->set,
            (std::vector<std::string>{"seed=3", "cluster.servers=localhost:1,localhost:2"}));
  EXPECT_EQ(line->log_level, "debug");
}

TEST(CommandLineTest, HelpAndVersionEndWellAndWrongUsageWithTwo) {
  EXPECT_EQ(std::get<int>(Parse({"--help"})), 0);
  EXPECT_EQ(std::get<int>(Parse({"--version"})), 0);
  EXPECT_EQ(std::get<int>(Parse({})), 2);
  EXPECT_EQ(std::get<int>(Parse({"--config", "run.yaml"})), 2);
  EXPECT_EQ(std::get<int>(Parse({"--config", "run.yaml", "--shard", "-1"})), 2);
  EXPECT_EQ(std::get<int>(Parse({"--config", "run.yaml", "--shard", "0", "--unknown"})), 2);
  EXPECT_EQ(std::get<int>(Parse({"--config", "a", "--shard", "0", "--log-level", "loud"})), 2);
}

TEST(CommandLineTest, NamesWhatAFlagTakes) {
  EXPECT_THAT(Refusal({"--shard", "-1"}),
              HasSubstr("--shard: must be a whole number in [0, 255]: -1 is too small\n"));
  EXPECT_THAT(Refusal({"--shard", "256"}),
              HasSubstr("a whole number in [0, 255]: 256 is too large\n"));
  EXPECT_THAT(Refusal({"--shard", "0", "--log-level", "warn"}),
              HasSubstr("--log-level: must be debug, info, warning or error, not \"warn\""));
  EXPECT_THAT(Refusal({"--shard", "0", "--log-format", "xml"}),
              HasSubstr("--log-format: must be text or json, not \"xml\"\n"));
}

TEST(CommandLineTest, TheCoordinatorsAddressIsForTheOtherShards) {
  EXPECT_THAT(Refusal({"--shard", "0", "--coordinator", "localhost:7070"}),
              HasSubstr("--coordinator is for the other shards"));
  for (const char* wrong : {"foo", ":7070", "localhost:", "localhost:0", "a:b"}) {
    SCOPED_TRACE(wrong);
    EXPECT_THAT(Refusal({"--shard", "1", "--coordinator", wrong}),
                HasSubstr(std::string("--coordinator: \"") + wrong + "\" is not host:port, as "));
  }
}

TEST(CommandLineTest, AnAggregatorHasNoAddressInTheSettings) {
  const auto parsed = Parse({"--config", "run.yaml", "--shard", "0", "--aggregate", "3", "--listen",
                             "localhost:0", "--coordinator", "localhost:7070"});
  const auto* line = std::get_if<CommandLine>(&parsed);
  ASSERT_NE(line, nullptr);
  EXPECT_EQ(line->aggregate, 3u);
  EXPECT_THAT(Refusal({"--shard", "0", "--aggregate", "3"}),
              HasSubstr("--aggregate needs --listen HOST:PORT"));
  EXPECT_THAT(Refusal({"--shard", "0", "--aggregate", "4096", "--listen", "localhost:0"}),
              HasSubstr("--aggregate: must be a whole number in [0, 4095]: 4096 is too large\n"));
}

}  // namespace
}  // namespace slipstream
