#include "common/log/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "common/settings/run_spec.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST(LoggingTest, WritesTimeRoleAndLevelToStderr) {
  testing::internal::CaptureStderr();
  StartLogging({"worker", 3}, LogSpec::Level::kInfo, LogSpec::Format::kText);

  LogInfo("joined", {{"worker", 3}});

  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              MatchesRegex("[-0-9]+T[:.0-9]+Z worker-3 info    joined worker=3\n"));
}

TEST(LoggingTest, AMessageIsOneLineOfTextWhateverItHolds) {
  testing::internal::CaptureStderr();
  StartLogging({"server", 0}, LogSpec::Level::kInfo, LogSpec::Format::kText);

  spdlog::info("worker left: {}",
               "\n2026-03-01T12:00:00.000000Z server-0 error   forged\r\x1b[2J\xff");

  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      MatchesRegex("[-0-9]+T[:.0-9]+Z server-0 info    worker left:  "
                   "2026-03-01T12:00:00.000000Z server-0 error   forged \uFFFD.2J\uFFFD\n"));
}

TEST(LoggingTest, LeavesOutWhatIsBelowTheLevel) {
  testing::internal::CaptureStderr();
  StartLogging({"server", 0}, LogSpec::Level::kWarning, LogSpec::Format::kText);

  spdlog::info("quiet");
  spdlog::warn("loud");

  const std::string output = testing::internal::GetCapturedStderr();
  EXPECT_THAT(output, Not(HasSubstr("quiet")));
  EXPECT_THAT(output, HasSubstr("server-0 warning loud"));
}

/// Logs the messages with this source as JSON. Returns the lines, parsed.
std::vector<nlohmann::json> JsonLines(const LogSource& source,
                                      const std::vector<std::string>& messages) {
  testing::internal::CaptureStderr();
  StartLogging(source, LogSpec::Level::kInfo, LogSpec::Format::kJson);
  for (const std::string& message : messages) spdlog::warn("{}", message);
  std::istringstream output(testing::internal::GetCapturedStderr());
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(output, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(LoggingTest, WritesJsonWithTimeLevelAndTheProcess) {
  const std::vector<nlohmann::json> lines = JsonLines({"server", 2}, {"hello key=1"});

  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["level"], "warning");
  EXPECT_EQ(lines[0]["role"], "server");
  EXPECT_EQ(lines[0]["shard"], 2);
  EXPECT_EQ(lines[0]["message"], "hello key=1");
  EXPECT_THAT(lines[0]["time"].get<std::string>(), MatchesRegex("20..-..-..T..:..:..[.]......Z"));
}

TEST(LoggingTest, JsonKeepsFieldsAndTheirTypes) {
  testing::internal::CaptureStderr();
  StartLogging({"server", 0}, LogSpec::Level::kInfo, LogSpec::Format::kJson);

  LogInfo("worker left",
          {{"worker", 3}, {"share", 0.5}, {"failure", "a \" b=\n"}, {"live", false}});
  LogInfo("nothing more");

  std::istringstream output(testing::internal::GetCapturedStderr());
  std::string line;
  ASSERT_TRUE(std::getline(output, line));
  const nlohmann::json first = nlohmann::json::parse(line);
  EXPECT_EQ(first["message"], "worker left");
  EXPECT_EQ(
      first["fields"],
      nlohmann::json({{"worker", 3}, {"share", 0.5}, {"failure", "a \" b=\n"}, {"live", false}}));
  ASSERT_TRUE(std::getline(output, line));
  EXPECT_FALSE(nlohmann::json::parse(line).contains("fields"));
}

TEST(LoggingTest, NoTextOfAMessageBecomesAField) {
  const auto line = JsonLines({"server", 0}, {R"(x worker=3","fields":{"worker":3})"})[0];
  EXPECT_FALSE(line.contains("fields")) << line;
}

TEST(LoggingTest, AWorkerWithoutIdHasNone) {
  EXPECT_FALSE(JsonLines({"worker", std::nullopt}, {"x"})[0].contains("worker"));
  EXPECT_EQ(JsonLines({"worker", 7}, {"x"})[0]["worker"], 7);
}

TEST(LoggingTest, JsonLinesSurviveWhateverAMessageHolds) {
  const std::vector<std::string> messages = {"quote \" backslash \\ {}",
                                             "line\nbreak\r\ttab",
                                             std::string("nul\0 bell\a", 9),
                                             "Größe ≤ 1",
                                             "",
                                             std::string(10'000, 'x')};

  const std::vector<nlohmann::json> lines = JsonLines({"server", 0}, messages);

  ASSERT_EQ(lines.size(), messages.size());
  for (size_t i = 0; i < messages.size(); ++i) EXPECT_EQ(lines[i]["message"], messages[i]);
}

TEST(LoggingTest, JsonReplacesBytesThatAreNoText) {
  EXPECT_EQ(JsonLines({"server", 0}, {"a\xff\xfe b"})[0]["message"], "a\uFFFD\uFFFD b");
}

TEST(LoggingDeathTest, LosesNothingWhenTheProcessDies) {
  EXPECT_EXIT(
      {
        StartLogging({"server", 1}, LogSpec::Level::kDebug, LogSpec::Format::kText);
        spdlog::debug("last words");
        raise(SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), "server-1 debug   last words");
}

}  // namespace
}  // namespace slipstream
