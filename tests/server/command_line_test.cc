#include "server/command_line.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace slipstream {
namespace {

std::variant<CommandLine, int> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ps_server");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
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

}  // namespace
}  // namespace slipstream
