#include "deploy/psctl/run/restart_policy.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace slipstream {
namespace {

ProcessEnd Exit(Role role, int code) { return {.name = {role, 1}, .exit_code = code}; }
ProcessEnd Killed(Role role, int signal) { return {.name = {role, 1}, .signal = signal}; }

RestartPolicy PolicyOfAll() {
  return RestartPolicy(
      {.scope = {.servers = true, .aggregators = true, .workers = true}, .starts_max = 3});
}

bool Starts(const ProcessEnd& end) { return PolicyOfAll().Decide({.end = end}).starts; }

/// Returns whether a process that had ended in the same way before starts again.
bool StartsTwice(const ProcessEnd& end, uint64_t reached_before, uint64_t reached) {
  return PolicyOfAll()
      .Decide({.end = end,
               .reached = reached,
               .starts = 1,
               .before = RestartFacts::Before{end, reached_before}})
      .starts;
}

TEST(RestartPolicyTest, StartsWhatWouldNotEndSoAgain) {
  EXPECT_TRUE(Starts(Killed(Role::kServer, SIGKILL)));
  EXPECT_TRUE(Starts(Exit(Role::kServer, 0)));
  EXPECT_TRUE(Starts(Exit(Role::kServer, 69)));
  EXPECT_TRUE(Starts(Exit(Role::kAggregator, 1)));
  EXPECT_TRUE(Starts(Exit(Role::kServer, 71))) << "a log that could not be written";
  EXPECT_TRUE(Starts(Killed(Role::kWorker, SIGSEGV)));
  EXPECT_TRUE(Starts(Exit(Role::kWorker, 1))) << "an exception of a user's program";
  EXPECT_TRUE(Starts(Exit(Role::kWorker, 143))) << "a signal from outside";

  for (const int code : {2, 74, 78, 80, 81}) {
    EXPECT_FALSE(Starts(Exit(Role::kServer, code))) << code;
    EXPECT_FALSE(Starts(Exit(Role::kWorker, code))) << code;
  }
  EXPECT_FALSE(Starts(Exit(Role::kWorker, 0))) << "it did its part";
  EXPECT_FALSE(
      PolicyOfAll()
          .Decide({.end = {.name = {Role::kWorker, 1}, .signal = SIGTERM, .was_told = true}})
          .starts);
}

TEST(RestartPolicyTest, AServerThatEndsWithTheRunHasDoneItsPart) {
  const RestartPolicy policy({.scope = {.servers = true}, .servers_end_with_run = true});

  EXPECT_FALSE(policy.Decide({.end = Exit(Role::kServer, 0)}).starts);
  EXPECT_TRUE(policy.Decide({.end = Exit(Role::kServer, 143)}).starts);
}

TEST(RestartPolicyTest, LeavesOtherRolesAlone) {
  const RestartPolicy policy({.scope = {.workers = true}});

  EXPECT_TRUE(policy.Decide({.end = Killed(Role::kWorker, SIGKILL)}).starts);
  const RestartDecision server = policy.Decide({.end = Killed(Role::kServer, SIGKILL)});
  EXPECT_FALSE(server.starts);
  EXPECT_EQ(server.why_not, "");
}

TEST(RestartPolicyTest, AFailureAtTheSamePlaceIsNotTriedAThirdTime) {
  EXPECT_FALSE(StartsTwice(Exit(Role::kWorker, 1), 7, 7));
  EXPECT_FALSE(StartsTwice(Killed(Role::kWorker, SIGSEGV), 7, 7));
  EXPECT_FALSE(StartsTwice(Exit(Role::kServer, 1), 9, 8)) << "it had returned to a checkpoint";
  EXPECT_TRUE(StartsTwice(Exit(Role::kWorker, 1), 7, 8)) << "it came further";

  const RestartDecision other =
      PolicyOfAll().Decide({.end = Exit(Role::kWorker, 1),
                            .starts = 1,
                            .before = RestartFacts::Before{Killed(Role::kWorker, SIGSEGV), 0}});
  EXPECT_TRUE(other.starts) << "it failed in another way";
}

TEST(RestartPolicyTest, WhoWasKilledOrCutOffMayBeSoAgain) {
  EXPECT_TRUE(StartsTwice(Killed(Role::kWorker, SIGKILL), 7, 7));
  EXPECT_TRUE(StartsTwice(Exit(Role::kWorker, 69), 7, 7));
  EXPECT_TRUE(StartsTwice(Exit(Role::kServer, 143), 7, 7));
}

TEST(RestartPolicyTest, PausesGrowAndStartsEnd) {
  const RestartPolicy policy({.scope = {.workers = true}, .starts_max = 6});
  RestartFacts facts = {.end = Killed(Role::kWorker, SIGKILL)};

  std::string pauses;
  RestartDecision decision = policy.Decide(facts);
  while (decision.starts) {
    pauses += absl::FormatDuration(decision.pause) + " ";
    facts.starts = decision.number;
    decision = policy.Decide(facts);
  }

  EXPECT_EQ(pauses, "250ms 1s 4s 16s 30s 30s ");
  EXPECT_EQ(decision.why_not, "it was started again 6 times already");
}

TEST(RestartPolicyTest, AProcessThatHasSettledIsCountedAnew) {
  const RestartDecision decision = PolicyOfAll().Decide(
      {.end = Killed(Role::kWorker, SIGKILL), .ran = absl::Minutes(5), .starts = 3});

  EXPECT_TRUE(decision.starts);
  EXPECT_EQ(decision.number, 1u);
  EXPECT_EQ(decision.pause, absl::Milliseconds(250));
}

TEST(RestartPolicyTest, ScopeIsWhatCanGoOn) {
  EXPECT_TRUE(ScopeOf(RestartChoice::kPossible, true)->servers);
  EXPECT_FALSE(ScopeOf(RestartChoice::kPossible, false)->servers);
  EXPECT_TRUE(ScopeOf(RestartChoice::kPossible, false)->workers);
  EXPECT_FALSE(ScopeOf(RestartChoice::kNone, true)->workers);
  EXPECT_FALSE(ScopeOf(RestartChoice::kServers, true)->workers);
  EXPECT_TRUE(ScopeOf(RestartChoice::kAll, true)->workers);
  EXPECT_TRUE(ScopeOf(RestartChoice::kWorkers, false).ok());
  EXPECT_EQ(ScopeOf(RestartChoice::kServers, false).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ScopeOf(RestartChoice::kAll, false).ok());
}

TEST(RestartPolicyTest, AWorkerIsAsFarAsItsPushesAndAServerAsItsVersion) {
  v1::RunStatus status;
  status.add_workers()->set_worker(3);
  status.mutable_workers(0)->set_pushes(12);
  status.add_shards()->set_version(5);

  EXPECT_EQ(Reached({Role::kWorker, 3}, status), 12u);
  EXPECT_EQ(Reached({Role::kWorker, 0}, status), 0u);
  EXPECT_EQ(Reached({Role::kServer, 0}, status), 5u);
  EXPECT_EQ(Reached({Role::kServer, 1}, status), 0u);
}

}  // namespace
}  // namespace slipstream
