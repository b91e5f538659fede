#include "deploy/psctl/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/deploy/psctl/example_status.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(StatusViewTest, ShowsALinePerShardAndPerWorker) {
  const std::string text = StatusText(ExampleStatus());

  EXPECT_THAT(text, HasSubstr("    1  127.0.0.1:7070       31706       99"));
  EXPECT_THAT(text, HasSubstr("     1  live   node      50"));
  EXPECT_THAT(text, HasSubstr("staleness  gradients  share   up to"));
  EXPECT_THAT(text, Not(HasSubstr("waits for")));
}

TEST(StatusViewTest, MarksAServerThatIsSilent) {
  v1::RunStatus status = ExampleStatus();
  status.mutable_shards(1)->set_silent_seconds(21.34);

  const std::string text = StatusText(status);

  EXPECT_THAT(text, HasSubstr("  heard\n"));
  EXPECT_THAT(text, HasSubstr(" 0.2 s ago\n"));
  EXPECT_THAT(text, HasSubstr(" 21.3 s ago <-- SILENT\n"));
}

TEST(StatusViewTest, ShowsNoLossOfAWorkerThatHasNotReported) {
  v1::RunStatus status = ExampleStatus();
  for (v1::WorkerStatus& worker : *status.mutable_workers()) worker.set_examples(0);

  EXPECT_THAT(StatusText(status), HasSubstr("loss -  accuracy -"));
  EXPECT_THAT(StatusText(status), Not(HasSubstr("0.0000")));
}

TEST(StatusViewTest, NamesTheMiniBatchesThatWereLeftOut) {
  v1::RunStatus status = ExampleStatus();
  EXPECT_THAT(StatusText(status), Not(HasSubstr("left out")));
  v1::NonfiniteStatus& nonfinite = *status.mutable_workers(1)->mutable_nonfinite();
  nonfinite.set_total(3);
  nonfinite.set_in_a_row(2);
  nonfinite.set_batch(531);
  nonfinite.set_what("a loss of nan");

  EXPECT_THAT(StatusText(status),
              HasSubstr("worker 1 left out 3 mini-batches without finite numbers, 2 in a row by "
                        "now; the last, mini-batch 531, gave a loss of nan\n"));
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
              HasSubstr("shard 1 has 2 of 4 gradients of version 101, open for 1.2 s, unchanged "
                        "for 0.8 s: closes when workers 1 and 3 push\n"));
}

TEST(StatusViewTest, MarksAStragglerAndSaysWhy) {
  v1::RunStatus status = ExampleStatus();
  EXPECT_THAT(StatusText(status), Not(HasSubstr("straggler")));
  status.mutable_workers(1)->set_is_straggler(true);
  status.mutable_workers(1)->set_straggler_reason("its steps take 5 s");

  const std::string text = StatusText(status);

  EXPECT_THAT(text, HasSubstr("  <-- STRAGGLER\n"));
  EXPECT_THAT(text, HasSubstr("worker 1 is a straggler: its steps take 5 s\n"));
}

TEST(StatusViewTest, LetsNoPeerWriteToTheTerminal) {
  const std::string hostile = "\x1b[2J\nhostile";
  v1::RunStatus status = ExampleStatus();
  status.set_failure(hostile);
  status.mutable_shards(0)->set_address(hostile);
  v1::WorkerStatus& worker = *status.mutable_workers(1);
  worker.set_host(hostile);
  worker.set_is_straggler(true);
  worker.set_straggler_reason(hostile);
  worker.mutable_nonfinite()->set_what(hostile);
  status.add_waiting_rounds()->set_outlook(hostile);
  status.add_evaluations()->set_model_failure(hostile);

  const std::string text = StatusText(status);

  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\nhostile")));
  size_t count = 0;
  for (size_t at = text.find("[2J hostile"); at != text.npos; at = text.find("[2J", at + 1))
    ++count;
  EXPECT_EQ(count, 7u);
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
