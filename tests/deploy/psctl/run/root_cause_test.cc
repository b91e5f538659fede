#include "deploy/psctl/run/root_cause.h"

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

namespace slipstream {
namespace {

ProcessEnd Exit(Role role, uint32_t number, int code) {
  return {.name = {role, number}, .exit_code = code};
}

ProcessEnd Killed(Role role, uint32_t number, int signal) {
  return {.name = {role, number}, .signal = signal};
}

ProcessEnd Told(ProcessEnd end) {
  end.was_told = true;
  return end;
}

TEST(RootCauseTest, AnAggregatorExplainsAFailureOnlyIfNothingElseDoes) {
  const ProcessEnd lost = Killed(Role::kAggregator, 1, SIGKILL);
  EXPECT_EQ(MeaningOf(lost), EndMeaning::kLostAggregator);
  EXPECT_EQ(MeaningOf(Exit(Role::kAggregator, 1, 78)), EndMeaning::kLostAggregator);
  EXPECT_EQ(MeaningOf(Told(Exit(Role::kAggregator, 1, 69))), EndMeaning::kHarmless);
  const std::vector<ProcessEnd> ends = {lost, Killed(Role::kWorker, 0, SIGKILL)};
  EXPECT_EQ(FindRootCause(ends), &ends[1]);
  EXPECT_EQ(FindRootCause({ends.data(), 1}), &ends[0]);
}

TEST(RootCauseTest, IsTheAggregatorThatCouldNotStart) {
  const std::vector<ProcessEnd> ends = {Exit(Role::kWorker, 0, 1), Exit(Role::kAggregator, 1, 78)};

  EXPECT_EQ(FindRootCause(ends), &ends[1]);
  EXPECT_TRUE(ExplainsItself(ends[1]));
  EXPECT_FALSE(ExplainsItself(Exit(Role::kAggregator, 1, 69))) << "its server may have ended first";
}

TEST(RootCauseTest, AServerThatLostAFileInTheEndHasFailedNoRun) {
  const std::vector<ProcessEnd> ends = {Told(Exit(Role::kServer, 0, 74)),
                                        Told(Exit(Role::kServer, 1, 143))};

  EXPECT_TRUE(LostAFile(ends[0]));
  EXPECT_FALSE(LostAFile(ends[1]));
  EXPECT_EQ(FindRootCause(ends), nullptr);
  EXPECT_FALSE(LostAFile(Exit(Role::kServer, 0, 74))) << "it ended by itself";
}

TEST(RootCauseTest, AServerThatHadNotBegunHasNothingToSave) {
  const std::vector<ProcessEnd> ends = {Told(Killed(Role::kServer, 0, SIGTERM)),
                                        Told(Exit(Role::kServer, 1, 143)),
                                        Killed(Role::kWorker, 0, SIGKILL)};
  EXPECT_EQ(FindUnsaved(ends), nullptr);
  const std::vector<ProcessEnd> lost = {Killed(Role::kServer, 0, SIGTERM)};
  EXPECT_EQ(FindUnsaved(lost), lost.data()) << "nobody has told it";
}

TEST(RootCauseTest, TakesAKilledWorkerForALossOnly) {
  EXPECT_EQ(MeaningOf(Killed(Role::kWorker, 1, SIGKILL)), EndMeaning::kLostWorker);
  EXPECT_EQ(MeaningOf(Exit(Role::kWorker, 1, 143)), EndMeaning::kLostWorker);
  EXPECT_EQ(MeaningOf(Exit(Role::kWorker, 1, 0)), EndMeaning::kHarmless);
  EXPECT_EQ(MeaningOf(Exit(Role::kWorker, 1, 1)), EndMeaning::kFailure);
}

TEST(RootCauseTest, TakesAWorkerThatWasCutOffForALossOnly) {
  EXPECT_EQ(MeaningOf(Exit(Role::kWorker, 1, 75)), EndMeaning::kLostWorker);
  EXPECT_EQ(MeaningOf(Exit(Role::kWorker, 1, 69)), EndMeaning::kLostWorker);
  EXPECT_EQ(MeaningOf(Exit(Role::kServer, 1, 75)), EndMeaning::kFailure);
  EXPECT_EQ(MeaningOf(Exit(Role::kServer, 1, 69)), EndMeaning::kFailure);
}

TEST(RootCauseTest, TakesAnyEndOfAServerThatWasNotToldForAFailure) {
  EXPECT_EQ(MeaningOf(Killed(Role::kServer, 0, SIGKILL)), EndMeaning::kFailure);
  EXPECT_EQ(MeaningOf(Exit(Role::kServer, 0, 0)), EndMeaning::kFailure);
  EXPECT_EQ(MeaningOf(Told(Exit(Role::kServer, 0, 0))), EndMeaning::kHarmless);
  EXPECT_EQ(MeaningOf(Told(Exit(Role::kServer, 0, 143))), EndMeaning::kHarmless);
  EXPECT_EQ(MeaningOf(Told(Killed(Role::kServer, 0, SIGKILL))), EndMeaning::kHarmless);
  EXPECT_EQ(MeaningOf(Told(Exit(Role::kServer, 0, 1))), EndMeaning::kFailure);
}

TEST(RootCauseTest, IsTheFirstOfItsKind) {
  const std::vector<ProcessEnd> ends = {Exit(Role::kWorker, 2, 1), Exit(Role::kWorker, 0, 3)};

  EXPECT_EQ(FindRootCause(ends), &ends[0]);
}

TEST(RootCauseTest, IsNotAProcessWhosePeerWentAway) {
  const std::vector<ProcessEnd> ends = {Exit(Role::kWorker, 0, 69), Exit(Role::kWorker, 1, 75),
                                        Killed(Role::kServer, 1, SIGSEGV)};

  EXPECT_EQ(FindRootCause(ends), &ends[2]);
}

TEST(RootCauseTest, IsTheConfigurationRatherThanTheServerThatNoticed) {
  const std::vector<ProcessEnd> ends = {Exit(Role::kServer, 0, 1),
                                        Told(Exit(Role::kWorker, 1, 78))};

  EXPECT_EQ(FindRootCause(ends), &ends[1]);
}

TEST(RootCauseTest, IsAKilledWorkerOnlyIfNothingElseFailed) {
  const std::vector<ProcessEnd> ends = {Killed(Role::kWorker, 0, SIGKILL),
                                        Exit(Role::kWorker, 1, 69)};

  EXPECT_EQ(FindRootCause(ends), &ends[1]);
  EXPECT_EQ(FindRootCause(std::span(ends).first(1)), &ends[0]);
}

TEST(RootCauseTest, IsTheServerRatherThanAWorkerThatWasCutOffBefore) {
  const std::vector<ProcessEnd> ends = {Exit(Role::kWorker, 0, 75), Exit(Role::kServer, 1, 75)};

  EXPECT_EQ(FindRootCause(ends), &ends[1]);
  EXPECT_EQ(FindRootCause(std::span(ends).first(1)), &ends[0]) << "if nothing else failed";
}

TEST(RootCauseTest, IsNothingWhenAllEndedWell) {
  const std::vector<ProcessEnd> ends = {Exit(Role::kWorker, 0, 0),
                                        Told(Exit(Role::kServer, 0, 143))};

  EXPECT_EQ(FindRootCause(ends), nullptr);
}

TEST(RootCauseTest, PassesOnWhatTheUserCanActOn) {
  EXPECT_EQ(ExitCodeFollowing(Exit(Role::kWorker, 0, 78)), ExitCode::kConfiguration);
  EXPECT_EQ(ExitCodeFollowing(Exit(Role::kWorker, 0, 74)), ExitCode::kIo);
  EXPECT_EQ(ExitCodeFollowing(Exit(Role::kServer, 0, 69)), ExitCode::kUnreachable);
  EXPECT_EQ(ExitCodeFollowing(Exit(Role::kServer, 0, 71)), ExitCode::kLogNotWritten);
  // psctl wrote that command line, not the user, so wrong usage is an internal error.
  EXPECT_EQ(ExitCodeFollowing(Exit(Role::kServer, 0, 2)), ExitCode::kInternal);
  EXPECT_EQ(ExitCodeFollowing(Exit(Role::kServer, 0, 42)), ExitCode::kInternal);
  EXPECT_EQ(ExitCodeFollowing(Killed(Role::kServer, 0, SIGABRT)), ExitCode::kInternal);
}

}  // namespace
}  // namespace slipstream
