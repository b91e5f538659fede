#include "deploy/psctl/node/node_verdict.h"

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

namespace slipstream {
namespace {

ProcessEnd Exit(Role role, int code) { return {.name = {role, 1}, .exit_code = code}; }

TEST(NodeVerdictTest, ANodeWithServersEndsWithThem) {
  const std::vector<ProcessEnd> worker_failed = {Exit(Role::kWorker, 7)};
  NodeFacts facts = {.ends = worker_failed, .servers_left = 1, .has_servers = true};
  EXPECT_EQ(JudgeNode(facts), NodeVerdict::kGoOn) << "its workers are not all that there are";

  const std::vector<ProcessEnd> finished = {Exit(Role::kWorker, 7), Exit(Role::kServer, 0)};
  facts = {.ends = finished, .has_servers = true};
  EXPECT_EQ(JudgeNode(facts), NodeVerdict::kDone);
  EXPECT_EQ(NodeExitCode(facts), 0);
}

TEST(NodeVerdictTest, AServersFailureIsTheNodes) {
  for (const int code : {69, 71, 74, 75, 78, 80, 81}) {
    const std::vector<ProcessEnd> ends = {Exit(Role::kServer, code)};
    const NodeFacts facts = {.ends = ends, .workers_left = 2, .has_servers = true};

    EXPECT_EQ(JudgeNode(facts), NodeVerdict::kServerFailed) << code;
  }
  const std::vector<ProcessEnd> killed = {{.name = {Role::kServer, 1}, .signal = SIGKILL}};
  EXPECT_EQ(JudgeNode({.ends = killed, .has_servers = true}), NodeVerdict::kServerFailed);
  const std::vector<ProcessEnd> told = {
      {.name = {Role::kServer, 1}, .exit_code = 143, .was_told = true}};
  EXPECT_EQ(JudgeNode({.ends = told, .has_servers = true}), NodeVerdict::kDone);
}

TEST(NodeVerdictTest, ProgramsOfWorkersMayGoOnForAWhile) {
  const std::vector<ProcessEnd> ends = {Exit(Role::kServer, 0)};
  NodeFacts facts = {.ends = ends,
                     .workers_left = 1,
                     .has_servers = true,
                     .without_servers = absl::Seconds(9),
                     .finish_timeout = absl::Seconds(10)};
  EXPECT_EQ(JudgeNode(facts), NodeVerdict::kGoOn);
  facts.without_servers = absl::Seconds(11);
  EXPECT_EQ(JudgeNode(facts), NodeVerdict::kDone);
}

TEST(NodeVerdictTest, AShardIsMissingThatIsSilentWhileTheRunTrains) {
  v1::RunStatus status;
  status.set_phase(v1::TRAINING);
  EXPECT_EQ(FindMissingShard(status, absl::Minutes(2), absl::Minutes(1)), std::nullopt);
  // No shard has reported: server 0 was started again, and a server is not.
  status.mutable_missing()->add_servers()->set_shard(1);
  status.mutable_missing()->set_fails_in_seconds(59);

  EXPECT_EQ(FindMissingShard(status, absl::Minutes(2), absl::Minutes(1)), 1u);
  EXPECT_EQ(FindMissingShard(status, absl::Minutes(3), absl::Minutes(3)), std::nullopt);
  status.set_phase(v1::FINISHED);
  EXPECT_EQ(FindMissingShard(status, absl::Minutes(2), absl::Minutes(1)), std::nullopt);
}

TEST(NodeVerdictTest, ANodeThatHasToLeaveKnowsWhetherTheRunHadEndedBefore) {
  const auto told = [](ProcessEnd end) {
    end.was_told = true;
    return end;
  };
  const auto verdict = [](const std::vector<ProcessEnd>& ends, v1::Phase phase = v1::TRAINING) {
    return JudgeLeaving({.ends = ends, .has_servers = true, .phase = phase});
  };
  const ProcessEnd signalled = Exit(Role::kServer, 143);
  EXPECT_EQ(verdict({}), NodeVerdict::kGoOn);
  EXPECT_EQ(verdict({told(signalled), told(Exit(Role::kWorker, 7))}), NodeVerdict::kGoOn);
  EXPECT_EQ(verdict({signalled, Exit(Role::kWorker, 69)}), NodeVerdict::kGoOn);
  EXPECT_EQ(verdict({Exit(Role::kServer, 0)}), NodeVerdict::kDone) << "its status is stale";
  EXPECT_EQ(verdict({told(signalled)}, v1::FINISHED), NodeVerdict::kDone);
  EXPECT_EQ(verdict({signalled}, v1::FINISHED), NodeVerdict::kDone);
  EXPECT_EQ(verdict({told(signalled)}, v1::FAILED), NodeVerdict::kServerFailed);
  EXPECT_EQ(verdict({Exit(Role::kServer, 81)}), NodeVerdict::kServerFailed);
  EXPECT_EQ(verdict({told(Exit(Role::kServer, 80))}), NodeVerdict::kServerFailed);
  EXPECT_EQ(verdict({told(Exit(Role::kServer, 74))}), NodeVerdict::kGoOn) << "it has not saved";
  EXPECT_EQ(verdict({Exit(Role::kWorker, 80)}), NodeVerdict::kServerFailed);
}

TEST(NodeVerdictTest, ANodeOfWorkersEndsWithTheRunOrWithTheirFailure) {
  const std::vector<ProcessEnd> failed = {Exit(Role::kWorker, 69), Exit(Role::kWorker, 78)};
  NodeFacts facts = {.ends = failed};
  EXPECT_EQ(JudgeNode(facts), NodeVerdict::kDone);
  EXPECT_EQ(NodeExitCode(facts), 78);
  facts.phase = v1::FINISHED;
  EXPECT_EQ(NodeExitCode(facts), 0) << "the run did without them";

  const std::vector<ProcessEnd> one_did_its_part = {Exit(Role::kWorker, 69),
                                                    Exit(Role::kWorker, 0)};
  EXPECT_EQ(NodeExitCode({.ends = one_did_its_part}), 0);
  EXPECT_EQ(JudgeNode({.ends = failed, .workers_left = 1}), NodeVerdict::kGoOn);
}

}  // namespace
}  // namespace slipstream
