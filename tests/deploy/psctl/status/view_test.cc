#include "deploy/psctl/status/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "deploy/psctl/status/tables.h"
#include "deploy/psctl/text_table.h"
#include "tests/deploy/psctl/example_status.h"

namespace slipstream {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Returns the status of a run with many problems: it has `workers` workers, of which some are dead
/// and one is slow, and rounds that wait.
v1::RunStatus LargeStatus(uint32_t workers) {
  v1::RunStatus status = ExampleStatus();
  *status.add_evaluations() = ExampleEvaluation(1, 0.8735, false);
  status.mutable_workers()->Clear();
  for (uint32_t id = 0; id < workers; ++id) {
    v1::WorkerStatus& worker = *status.add_workers();
    worker.set_worker(id);
    worker.set_state(id % 10 == 3 ? "dead" : "live");
    if (id % 10 == 3) worker.set_failure("unheard of for more than its lease of 5s");
    worker.set_host("node-with-a-long-name-" + std::to_string(id));
    worker.set_pushes(1'000'000 + id);
    worker.set_examples(1600);
    worker.set_examples_per_second(1234.5);
    worker.set_step_seconds(0.0257);
    worker.set_train_loss(0.5);
    worker.set_train_accuracy(0.875);
  }
  status.mutable_workers(7)->set_is_straggler(true);
  status.mutable_workers(7)->set_straggler_reason(
      "its steps take 103 ms, 4.0 times the median of 25.7 ms");
  for (uint32_t shard = 0; shard < 2; ++shard) {
    v1::WaitingRound& round = *status.add_waiting_rounds();
    round.set_shard(shard);
    round.set_round_size(workers);
    round.set_unchanged_seconds(3);
    round.set_outlook("closes when worker 7 pushes; without a word from it its lease ends in 2 s");
  }
  return status;
}

/// Returns the page in full, each line with its end.
std::string StatusText(const v1::RunStatus& status) {
  std::string text;
  for (const ScreenLine& line : StatusPage(status, ScreenSize())) text += line.text + "\n";
  return text;
}

std::vector<std::string> Texts(const std::vector<ScreenLine>& page) {
  std::vector<std::string> texts;
  for (const ScreenLine& line : page) texts.push_back(line.text);
  return texts;
}

TEST(StatusPageTest, FitsEveryWindowAndShowsWhatItCuts) {
  const v1::RunStatus status = LargeStatus(64);
  for (size_t rows = 1; rows <= 45; rows += 2) {
    for (size_t columns = 1; columns <= 200; columns += 13) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << columns << " columns");

      const std::vector<ScreenLine> page = StatusPage(status, {rows, columns});

      ASSERT_LE(page.size(), rows);
      for (const ScreenLine& line : page) ASSERT_LE(DisplayWidth(line.text), columns) << line.text;
    }
  }
}

TEST(StatusPageTest, ShowsAlarmsFiguresShardsAndWorkersInEightyByTwentyFour) {
  EXPECT_THAT(
      Texts(StatusPage(LargeStatus(64), {23, 79})),
      ElementsAre("workers 3, 13, 23, 33 and 3 more are dead: unheard of for more than its lease …",
                  "worker 7 is a straggler: its steps take 103 ms, 4.0 times the median of 25.7 ms",
                  "shard 0 has 0 of 64 gradients, none new for 3.00 s: closes when worker 7 pushe…",
                  "shard 1 has 0 of 64 gradients, none new for 3.00 s: closes when worker 7 pushe…",
                  "", "run         demo", "policy      softsync (n = 2, 1 gradient per update)",
                  "state       training 25.0%  1234 examples/s  no gradient for 3.00 s  1m30s left",
                  "evaluation  epoch 1.02: test accuracy 87.35%, test loss 0.2500 at version 1406…",
                  "… 6 more figures", "", StartsWith("shard  address"),
                  StartsWith("    0  127.0.0.1:7070"), StartsWith("    1  127.0.0.1:7070"), "",
                  StartsWith("worker  state"), StartsWith("     7  STRAGGLER"),
                  StartsWith("     3  dead"), StartsWith("    13  dead"),
                  StartsWith("    23  dead"), StartsWith("    33  dead"),
                  StartsWith("    43  dead"), "… 58 more workers"));
}

TEST(StatusPageTest, KeepsTheEssentialsInFortyColumns) {
  const std::vector<std::string> texts = Texts(StatusPage(LargeStatus(8), {23, 39}));
  const std::string text = testing::PrintToString(texts);

  EXPECT_THAT(text, HasSubstr("worker 3 is dead: unheard of for more …"));
  EXPECT_THAT(text, HasSubstr("state       training 25.0%  1m30s left"));
  EXPECT_THAT(text, HasSubstr("evaluation  epoch 1.02: test accuracy …"));
  EXPECT_THAT(text, HasSubstr("worker  state      examples/s"));
  EXPECT_THAT(text, HasSubstr("     7  STRAGGLER"));
}

TEST(StatusPageTest, PutsWhoIsInTroubleFirstWhereNotAllHaveRoom) {
  const v1::RunStatus status = LargeStatus(8);

  const auto workers = [&](size_t rows) {
    std::string ids;
    for (const std::string& line : Texts(WorkerTable(status, {rows, 79}))) {
      ids += line.starts_with("…") ? line : line.substr(5, 1) + " ";
    }
    return ids;
  };

  EXPECT_EQ(workers(9), "r 0 1 2 3 4 5 6 7 ");
  EXPECT_EQ(workers(5), "r 7 3 0 … 5 more workers");
  EXPECT_EQ(workers(2), "r … 8 more workers");
}

TEST(StatusPageTest, ColoursAlarmsAndTheLinesOfWhoIsInTrouble) {
  std::map<LineStyle, int> counts;
  for (const ScreenLine& line : StatusPage(LargeStatus(8), ScreenSize())) ++counts[line.style];

  EXPECT_EQ(counts[LineStyle::kAlarm], 2) << "a dead worker and its line";
  EXPECT_EQ(counts[LineStyle::kWarning], 4) << "a straggler, its line, and two rounds";
  EXPECT_EQ(counts[LineStyle::kHeading], 3);
}

TEST(StatusPageTest, SaysHowManyGradientsMakeAnUpdateWhereAWorkerWasLost) {
  v1::RunStatus status = ExampleStatus();
  status.set_policy("hardsync");
  status.clear_policy_parameters();
  status.set_round_size(4);
  for (v1::ShardStatus& shard : *status.mutable_shards()) shard.set_round_size(3);

  EXPECT_THAT(StatusText(status), HasSubstr("hardsync (4 gradients per update); 3 now\n"));
}

TEST(StatusViewTest, ShowsALinePerShardAndPerWorker) {
  const std::string text = StatusText(ExampleStatus());

  EXPECT_THAT(text, HasSubstr("    1  127.0.0.1:7070       31706       99"));
  EXPECT_THAT(text, HasSubstr("     1  live   node      50"));
  EXPECT_THAT(text, HasSubstr("staleness  gradients  share   up to"));
  EXPECT_THAT(text, Not(HasSubstr("waits for")));
}

TEST(StatusViewTest, ShowsCheckpointsWhereTheRunSavesSome) {
  v1::RunStatus status = ExampleStatus();
  EXPECT_THAT(StatusText(status), Not(HasSubstr("checkpoint")));

  status.set_checkpoint_interval_seconds(10);
  EXPECT_THAT(StatusText(status),
              HasSubstr("checkpoints    every 10.0 s; not all shards have one yet\n"));

  for (v1::ShardStatus& shard : *status.mutable_shards()) {
    shard.mutable_checkpoint()->set_version(90 + shard.shard());
    shard.mutable_checkpoint()->set_age_seconds(4.1 + shard.shard());
    shard.mutable_checkpoint()->set_bytes(512 << 10);
  }
  status.mutable_shards(1)->set_generation(2);
  status.mutable_shards(1)->set_versions_lost(34);
  const std::string text = StatusText(status);
  EXPECT_THAT(text, HasSubstr("every 10.0 s; the oldest of the last ones 5.10 s ago, together 1.0 "
                              "MiB; 2 returns, at least 34 versions lost\n"));
  EXPECT_THAT(text, ContainsRegex("heard +generation +checkpoint\n"));
  EXPECT_THAT(text, ContainsRegex("200 ms ago +0 +90, 4.10 s ago\n"));
  EXPECT_THAT(text, ContainsRegex("200 ms ago +2 +91, 5.10 s ago\n"));
}

TEST(StatusViewTest, ShowsTheLogsWhereShardsKeepSome) {
  v1::RunStatus status = ExampleStatus();
  status.set_checkpoint_interval_seconds(10);
  EXPECT_THAT(StatusText(status), Not(HasSubstr("written")));

  v1::LogStatus& log = *status.mutable_shards(1)->mutable_log();
  log.set_bytes(512 << 10);
  log.set_events(82);
  log.set_batches(10);
  log.set_batch_seconds(0.0031);
  log.set_events_redone(2300);
  const std::string text = StatusText(status);
  EXPECT_THAT(text, HasSubstr("512.0 KiB written, 8.20 events a batch, at most 3.10 ms each; 1 "
                              "shard went on from its log, 2300 events\n"));
  EXPECT_THAT(text, ContainsRegex("checkpoint +log\n"));
  EXPECT_THAT(text, ContainsRegex("512.0 KiB, 3.10 ms\n"));
}

TEST(StatusViewTest, MarksAServerThatIsSilent) {
  v1::RunStatus status = ExampleStatus();
  status.mutable_shards(1)->set_silent_seconds(21.34);

  const std::string text = StatusText(status);

  EXPECT_THAT(text, HasSubstr(" 200 ms ago\n"));
  EXPECT_THAT(text, HasSubstr(" 21.3 s ago <-- SILENT\n"));
}

TEST(StatusViewTest, ShowsALinePerAggregator) {
  v1::RunStatus status = ExampleStatus();
  v1::AggregatorStatus& waiting = *status.add_aggregators();
  waiting.set_address("rack-0:7171");
  waiting.set_parts(41);
  waiting.set_composites(20);
  waiting.set_sent_back(3);
  waiting.add_waiting_for(1);
  waiting.set_waiting_seconds(0.02);
  v1::AggregatorStatus& absent = *status.add_aggregators();
  absent.set_group(1);

  const std::string text = StatusText(status);

  EXPECT_THAT(text, ContainsRegex("0 +0 +rack-0:7171 +41 +20 +3 +1 for 20.0 ms +0 s ago\n"));
  EXPECT_THAT(text, ContainsRegex("1 +0 +- +0 +0 +0 +- +never\n"));
}

TEST(StatusViewTest, ShowsNoLossOfAWorkerThatHasNotReported) {
  v1::RunStatus status = ExampleStatus();
  for (v1::WorkerStatus& worker : *status.mutable_workers()) worker.set_examples(0);

  EXPECT_THAT(StatusText(status), HasSubstr("train loss -  train accuracy -"));
  EXPECT_THAT(StatusText(status), Not(HasSubstr("0.0000")));
}

TEST(StatusViewTest, SaysWhatAnOpenRoundWaitsForAndWhatWillHappen) {
  v1::RunStatus status = ExampleStatus();
  v1::WaitingRound& round = *status.add_waiting_rounds();
  round.set_shard(1);
  round.set_version(101);
  round.set_contributions(2);
  round.set_round_size(4);
  round.set_open_seconds(1.24);
  round.set_unchanged_seconds(0.81);
  round.set_outlook("closes when workers 1 and 3 push");

  EXPECT_THAT(StatusText(status),
              HasSubstr("shard 1 has 2 of 4 gradients, none new for 810 ms: closes when workers 1 "
                        "and 3 push (version 101, open for 1.24 s)\n"));
}

TEST(StatusViewTest, MarksAStragglerAndSaysWhy) {
  v1::RunStatus status = ExampleStatus();
  EXPECT_THAT(StatusText(status), Not(HasSubstr("straggler")));
  status.mutable_workers(1)->set_is_straggler(true);
  status.mutable_workers(1)->set_straggler_reason("its steps take 5 s");

  const std::string text = StatusText(status);

  EXPECT_THAT(text, HasSubstr("     1  STRAGGLER  node"));
  EXPECT_THAT(text, HasSubstr("worker 1 is a straggler: its steps take 5 s\n"));
}

TEST(StatusViewTest, NamesTheWorkersThatATestSlows) {
  v1::RunStatus status = ExampleStatus();
  EXPECT_THAT(StatusText(status), Not(HasSubstr("slowed")));
  status.mutable_workers(1)->set_slowdown("a mini-batch takes 4 times as long");

  EXPECT_THAT(StatusText(status), HasSubstr("worker 1 is slowed for a test (testing.workers): a "
                                            "mini-batch takes 4 times as long\n"));
}

TEST(StatusViewTest, LetsNoPeerWriteToTheTerminal) {
  const std::string hostile = "\x1b[2J\nhostile";
  v1::RunStatus status = ExampleStatus();
  status.set_failure(hostile);
  status.mutable_workers(0)->set_state("dead");
  status.mutable_workers(0)->set_failure(hostile);
  status.mutable_missing()->add_servers()->set_address(hostile);
  status.mutable_shards(0)->set_address(hostile);
  v1::WorkerStatus& worker = *status.mutable_workers(1);
  worker.set_host(hostile);
  worker.set_is_straggler(true);
  worker.set_straggler_reason(hostile);
  worker.set_slowdown(hostile);
  worker.mutable_nonfinite()->set_what(hostile);
  status.add_waiting_rounds()->set_outlook(hostile);
  status.add_evaluations()->set_model_failure(hostile);

  const std::string text = StatusText(status);

  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\nhostile")));
  size_t count = 0;
  for (size_t at = text.find("[2J hostile"); at != text.npos; at = text.find("[2J", at + 1))
    ++count;
  EXPECT_EQ(count, 10u);
}

TEST(StatusViewTest, CountsRefusalsByReason) {
  v1::RunStatus status = ExampleStatus();
  EXPECT_THAT(StatusText(status), HasSubstr("refused        none\n"));
  (*status.mutable_refusals())["RETRY_LATER"] = 12;
  (*status.mutable_refusals())["NONFINITE"] = 3;

  EXPECT_THAT(StatusText(status), HasSubstr("refused        NONFINITE 3, RETRY_LATER 12\n"));
}

TEST(StatusViewTest, ShowsTheEffectiveLearningRateWhereItDiffers) {
  v1::RunStatus status = ExampleStatus();
  status.set_learning_rate(0.1);
  status.set_effective_learning_rate(0.1);
  EXPECT_THAT(StatusText(status), HasSubstr("learning rate  0.1\n"));
  status.set_effective_learning_rate(0.025);

  EXPECT_THAT(StatusText(status), HasSubstr("learning rate  0.1, effective 0.025\n"));
}

TEST(StatusViewTest, CanShowARunThatHasNotBegun) {
  EXPECT_THAT(StatusText(v1::RunStatus()), HasSubstr("state          starting\n"));
}

}  // namespace
}  // namespace slipstream
