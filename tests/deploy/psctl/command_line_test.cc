#include "deploy/psctl/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "common/process/version.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::variant<Arguments, ExitCode> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "psctl");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

template <typename T>
T Parsed(std::vector<const char*> arguments) {
  return std::get<T>(std::get<Arguments>(Parse(std::move(arguments))));
}

ExitCode Refused(std::vector<const char*> arguments) {
  return std::get<ExitCode>(Parse(std::move(arguments)));
}

TEST(CommandLineTest, TakesSettingsBeforeAndAfterTheFile) {
  const auto run = Parsed<RunArguments>(
      {"run", "--set", "seed=3", "run.yaml", "--set", "cluster.servers=[a:1,b:2]", "-o", "json"});

  EXPECT_EQ(run.config.path, "run.yaml");
  EXPECT_THAT(run.config.overrides, ElementsAre("seed=3", "cluster.servers=[a:1,b:2]"));
  EXPECT_EQ(run.format, OutputFormat::kJson);
  EXPECT_FALSE(run.push_log);
  EXPECT_EQ(run.restart, RestartChoice::kNone);
}

TEST(CommandLineTest, KnowsEveryCommand) {
  EXPECT_EQ(Parsed<RunArguments>({"run", "a", "--push-log", "--run-dir", "d"}).run_dir, "d");
  EXPECT_EQ(Parsed<ValidateArguments>({"validate", "a"}).config.path, "a");
  EXPECT_EQ(Parsed<ConfigInitArguments>({"config", "init"}).path, "run.yaml");
  EXPECT_EQ(Parsed<ConfigInitArguments>({"config", "init", "-"}).path, "-");
  EXPECT_TRUE(Parsed<ConfigInitArguments>({"config", "init", "x", "--force"}).force);
  EXPECT_EQ(Parsed<ConfigShowArguments>({"config", "show", "a"}).format, OutputFormat::kYaml);
  EXPECT_EQ(Parsed<EvaluateArguments>({"evaluate", "runs/a", "-o", "json"}).model, "runs/a");
  EXPECT_THAT(Parsed<CompareArguments>({"compare", "a", "b", "-o", "json"}).directories,
              ElementsAre("a", "b"));
  EXPECT_EQ(Parsed<PlotArguments>({"plot", "a", "--output", "b.svg"}).output, "b.svg");
  EXPECT_EQ(Parsed<StatusArguments>({"status", "--coordinator", "h:1"}).coordinator, "h:1");
}

TEST(CommandLineTest, ARestartIsWhatIsPossibleOrWhatIsNamed) {
  const auto run = Parsed<RunArguments>({"run", "--restart", "a"});
  EXPECT_EQ(run.restart, RestartChoice::kPossible);
  EXPECT_EQ(run.config.path, "a");
  EXPECT_EQ(run.restart_max, 5u);

  const auto chosen = Parsed<RunArguments>({"run", "a", "--restart=workers", "--restart-max", "9"});
  EXPECT_EQ(chosen.restart, RestartChoice::kWorkers);
  EXPECT_EQ(chosen.restart_max, 9u);
  EXPECT_EQ(Parsed<RunArguments>({"run", "a", "--restart=all"}).restart, RestartChoice::kAll);
  EXPECT_EQ(Refused({"run", "a", "--restart=some"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"run", "a", "--restart", "--restart-max", "0"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"run", "a", "--restart-max", "3"}), ExitCode::kUsage);
}

TEST(CommandLineTest, KnowsTheCommandsOfTheLaboratory) {
  const auto run =
      Parsed<LabArguments>({"lab", "run", "grid.yaml", "--dir", "d", "--only", "failed"});

  EXPECT_EQ(run.action, LabArguments::Action::kRun);
  EXPECT_EQ(run.grid, "grid.yaml");
  EXPECT_EQ(run.directory, "d");
  EXPECT_TRUE(run.only_failed);
  EXPECT_FALSE(run.is_dry);
  EXPECT_TRUE(Parsed<LabArguments>({"lab", "report", "g", "--any-build"}).takes_any_build);
  EXPECT_TRUE(Parsed<LabArguments>({"lab", "run", "g", "--dry-run"}).is_dry);
  EXPECT_TRUE(Parsed<EventsArguments>({"events", "--coordinator", "h:1", "--follow"}).follow);
  EXPECT_EQ(Parsed<LabArguments>({"lab", "status", "g", "-o", "json"}).format, OutputFormat::kJson);
  EXPECT_EQ(Parsed<LabArguments>({"lab", "report", "g"}).action, LabArguments::Action::kReport);
  EXPECT_EQ(Refused({"lab", "run", "g", "--only", "pending"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"lab"}), ExitCode::kUsage);
}

TEST(CommandLineTest, RefusesWhatItDoesNotUnderstand) {
  EXPECT_EQ(Refused({}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"fly"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"config"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"run"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"status"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"run", "a", "b"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"compare"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"plot", "a", "-o", "json"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"run", "a", "-o", "xml"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"validate", "a", "-o", "yaml"}), ExitCode::kUsage);
}

TEST(CommandLineTest, TakesTimesWithTheirUnits) {
  EXPECT_EQ(Parsed<RunArguments>({"run", "a"}).stop_timeout, absl::Seconds(10));
  EXPECT_EQ(Parsed<RunArguments>({"run", "a"}).save_timeout, absl::Seconds(30));
  EXPECT_EQ(Parsed<RunArguments>({"run", "a", "--stop-timeout", "1.5s"}).stop_timeout,
            absl::Milliseconds(1500));
  EXPECT_EQ(Refused({"run", "a", "--stop-timeout", "-1"}), ExitCode::kUsage);
  testing::internal::CaptureStderr();
  EXPECT_EQ(Refused({"run", "a", "--stop-timeout", "2h"}), ExitCode::kUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("a time in [0s, 1h]"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(Refused({"run", "a", "--stop-timeout", "10"}), ExitCode::kUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("has no unit; write 10ms, 10s"));
}

TEST(CommandLineTest, KnowsByWhatItWasStarted) {
  EXPECT_EQ(Parsed<RunArguments>({"run", "a"}).program, "psctl");
}

TEST(CommandLineTest, SaysWhatWasMeantByASettingWithoutSet) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Refused({"run", "a", "--epochs", "3"}), ExitCode::kUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("unexpected arguments: --epochs 3; did you mean --set training.epochs=3?"));

  testing::internal::CaptureStderr();
  EXPECT_EQ(Refused({"status", "--coordinator", "h:1", "--epochs", "3"}), ExitCode::kUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("it is a setting of the run"));
}

TEST(CommandLineTest, EndsTheTrainingOfTheCoordinatorThatIsNamed) {
  EXPECT_EQ(Parsed<StopArguments>({"stop", "--coordinator", "h:1"}).coordinator, "h:1");
  EXPECT_EQ(Refused({"stop"}), ExitCode::kUsage);
}

TEST(CommandLineTest, DrainsTheServerThatIsNamedOrAll) {
  const auto one = Parsed<DrainArguments>({"drain", "--coordinator", "h:1", "--server", "2"});
  EXPECT_EQ(one.coordinator, "h:1");
  EXPECT_EQ(one.server, 2u);
  EXPECT_EQ(one.timeout, absl::Seconds(30));
  EXPECT_EQ(Parsed<DrainArguments>({"drain", "--coordinator", "h:1"}).server, std::nullopt);
  EXPECT_EQ(Refused({"drain"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"drain", "--coordinator", "h:1", "--server", "x"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"drain", "--coordinator", "h:1", "--timeout", "0s"}), ExitCode::kUsage);
}

TEST(CommandLineTest, OrdersACheckpointOfTheRunThatIsNamed) {
  const auto save =
      Parsed<SaveArguments>({"checkpoint", "save", "--coordinator", "h:1", "--timeout", "10m"});
  EXPECT_EQ(save.coordinator, "h:1");
  EXPECT_EQ(save.timeout, absl::Minutes(10));
  EXPECT_EQ(Refused({"checkpoint", "save"}), ExitCode::kUsage);
}

TEST(CommandLineTest, ChangesThePolicyAndSettingsThatAreNamed) {
  const auto policy =
      Parsed<ChangeArguments>({"policy", "set", "--coordinator", "h:1", "softsync", "--n", "2"});
  EXPECT_EQ(policy.coordinator, "h:1");
  EXPECT_EQ(policy.settings,
            (std::vector<std::string>{"consistency.policy=softsync", "consistency.n=2"}));
  const auto rate =
      Parsed<ChangeArguments>({"set", "optimizer.learning_rate=0.5", "--coordinator", "h:1"});
  EXPECT_EQ(rate.settings, std::vector<std::string>{"optimizer.learning_rate=0.5"});
  EXPECT_EQ(Refused({"policy", "set", "--coordinator", "h:1"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"policy"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"set", "--coordinator", "h:1"}), ExitCode::kUsage);
}

TEST(CommandLineTest, PullsIntoTheFileThatIsNamed) {
  const auto pull =
      Parsed<PullArguments>({"pull", "a.safetensors", "--coordinator", "h:1", "--timeout", "5m"});
  EXPECT_EQ(pull.output, "a.safetensors");
  EXPECT_EQ(pull.coordinator, "h:1");
  EXPECT_EQ(pull.timeout, absl::Minutes(5));
  EXPECT_FALSE(pull.force);

  EXPECT_TRUE(Parsed<PullArguments>({"pull", "a", "--coordinator", "h:1", "--force"}).force);
  EXPECT_EQ(Refused({"pull", "--coordinator", "h:1"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"pull", "a", "--coordinator", "h:1", "--timeout", "0s"}), ExitCode::kUsage);
}

TEST(CommandLineTest, ReadsCheckpointsOfTheDirectoryThatIsNamed) {
  using Action = CheckpointArguments::Action;
  EXPECT_EQ(Parsed<CheckpointArguments>({"checkpoint", "ls", "d"}).action, Action::kLs);
  EXPECT_EQ(Parsed<CheckpointArguments>({"checkpoint", "ls", "d", "-o", "json"}).format,
            OutputFormat::kJson);
  EXPECT_EQ(Parsed<CheckpointArguments>({"checkpoint", "verify", "d"}).action, Action::kVerify);
  EXPECT_EQ(Parsed<CheckpointArguments>({"checkpoint", "inspect", "d"}).action, Action::kInspect);
  const auto exported = Parsed<CheckpointArguments>(
      {"checkpoint", "export", "d", "--out", "a.safetensors", "--version", "12", "--force"});
  EXPECT_EQ(exported.action, Action::kExport);
  EXPECT_EQ(exported.directory, "d");
  EXPECT_EQ(exported.output, "a.safetensors");
  EXPECT_EQ(exported.version, 12u);
  EXPECT_TRUE(exported.force);

  EXPECT_EQ(Refused({"checkpoint"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"checkpoint", "ls"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"checkpoint", "export", "d"}), ExitCode::kUsage);
  EXPECT_EQ(Refused({"checkpoint", "export", "d", "--out", "a", "--version", "new"}),
            ExitCode::kUsage);
  testing::internal::CaptureStderr();
  EXPECT_EQ(Refused({"checkpoint", "verfy", "d"}), ExitCode::kUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(R"(did you mean "verify"?)"));
}

TEST(CommandLineTest, WatchesAtAnIntervalWithAUnit) {
  const auto watch = [](std::vector<const char*> more) {
    more.insert(more.begin(), {"status", "--coordinator", "h:1"});
    return Parse(more);
  };
  const auto chosen = [](const auto& parsed) {
    return std::get<StatusArguments>(std::get<Arguments>(parsed));
  };

  EXPECT_FALSE(chosen(watch({})).watch);
  EXPECT_TRUE(chosen(watch({"--watch"})).watch);
  EXPECT_EQ(chosen(watch({"--watch"})).interval, absl::Seconds(1));
  EXPECT_EQ(chosen(watch({"--watch", "--interval", "2.5s"})).interval, absl::Milliseconds(2500));
  EXPECT_EQ(chosen(watch({"--interval", "100ms", "--watch"})).interval, absl::Milliseconds(100));
  EXPECT_EQ(chosen(watch({"--watch"})).wait, absl::Minutes(1));
  EXPECT_EQ(chosen(watch({"--watch", "--wait", "10m"})).wait, absl::Minutes(10));
  for (const char* wrong : {"1", "0.01s", "2h", "soon", ""}) {
    SCOPED_TRACE(wrong);
    testing::internal::CaptureStderr();
    EXPECT_EQ(std::get<ExitCode>(watch({"--watch", "--interval", wrong})), ExitCode::kUsage);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("--interval: "));
  }
  testing::internal::CaptureStderr();
  EXPECT_EQ(std::get<ExitCode>(watch({"--interval", "1s"})), ExitCode::kUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("--watch"));
}

TEST(CommandLineTest, NamesAWrongCommand) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Refused({"stauts", "--coordinator", "h:1"}), ExitCode::kUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr(R"(there is no command 'stauts'; did you mean "status"?)"));

  testing::internal::CaptureStderr();
  EXPECT_EQ(Refused({"config", "fly"}), ExitCode::kUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("there is no command 'fly'\n"));
}

TEST(CommandLineTest, RefusesACoordinatorThatIsNoAddress) {
  for (const char* coordinator : {"localhost", ":7070", "localhost:", "localhost:0", "a:b"}) {
    SCOPED_TRACE(coordinator);
    testing::internal::CaptureStderr();

    EXPECT_EQ(Refused({"status", "--coordinator", coordinator}), ExitCode::kUsage);

    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("is not host:port"));
  }
}

TEST(CommandLineTest, HelpsWithExamplesForEveryCommand) {
  const std::vector<std::vector<const char*>> commands = {{"--help"},
                                                          {"run", "--help"},
                                                          {"validate", "--help"},
                                                          {"config", "init", "--help"},
                                                          {"config", "show", "--help"},
                                                          {"status", "--help"}};
  for (const auto& command : commands) {
    testing::internal::CaptureStdout();

    EXPECT_EQ(Refused(command), ExitCode::kOk);

    EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("Examples:\n  psctl "));
  }
}

TEST(CommandLineTest, TellsItsVersion) {
  testing::internal::CaptureStdout();

  EXPECT_EQ(Refused({"--version"}), ExitCode::kOk);

  EXPECT_EQ(testing::internal::GetCapturedStdout(), VersionLine("psctl") + "\n");
}

}  // namespace
}  // namespace slipstream
