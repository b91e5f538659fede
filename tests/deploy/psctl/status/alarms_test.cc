#include "deploy/psctl/status/alarms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/deploy/psctl/example_status.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

void AddMissingServer(uint32_t shard, const std::string& address, v1::RunStatus& status) {
  v1::MissingMembers::Server& server = *status.mutable_missing()->add_servers();
  server.set_shard(shard);
  server.set_address(address);
  status.mutable_missing()->set_fails_in_seconds(112);
}

TEST(StatusAlarmsTest, SaysNothingWhereAllIsWell) {
  v1::RunStatus status = ExampleStatus();
  status.add_waiting_rounds()->set_unchanged_seconds(0.5);

  EXPECT_THAT(StatusAlarms(status), IsEmpty());
}

TEST(StatusAlarmsTest, NamesTheServerThatIsWaitedForAndWhenTheRunFails) {
  v1::RunStatus status;
  status.set_phase(v1::WAITING_FOR_SERVERS);
  AddMissingServer(1, "localhost:7071", status);

  EXPECT_THAT(StatusAlarms(status),
              ElementsAre(ScreenLine{"waiting for server 1 (localhost:7071), fails in 1m52s",
                                     LineStyle::kWarning}));
}

TEST(StatusAlarmsTest, SaysHowLongAServerHasBeenSilent) {
  v1::RunStatus status = ExampleStatus();
  status.mutable_shards(1)->set_silent_seconds(8.02);
  AddMissingServer(1, "127.0.0.1:7070", status);

  EXPECT_THAT(StatusAlarms(status),
              ElementsAre(ScreenLine{
                  "waiting for server 1 (127.0.0.1:7070), silent for 8.02 s, fails in 1m52s",
                  LineStyle::kAlarm}));
}

TEST(StatusAlarmsTest, NamesWorkersThatAreWaitedFor) {
  v1::RunStatus status;
  status.set_phase(v1::WAITING_FOR_WORKERS);
  for (uint32_t worker = 1; worker <= 3; ++worker) status.mutable_missing()->add_workers(worker);
  status.mutable_missing()->set_fails_in_seconds(59);
  EXPECT_EQ(MissingText(status), "waiting for workers 1, 2 and 3, fails in 59.0 s");

  for (uint32_t worker = 4; worker <= 64; ++worker) status.mutable_missing()->add_workers(worker);
  EXPECT_EQ(MissingText(status), "waiting for workers 1, 2, 3, 4 and 60 more, fails in 59.0 s");

  status.mutable_missing()->clear_workers();
  status.mutable_missing()->add_workers(2);
  status.set_phase(v1::INITIALIZING);
  EXPECT_EQ(MissingText(status),
            "waiting for worker 2 to send the initial weights, fails in 59.0 s");

  status.mutable_missing()->clear_workers();
  status.set_phase(v1::TRAINING);
  status.mutable_missing()->set_fails_in_seconds(0);
  EXPECT_EQ(MissingText(status), "waiting for a worker to come back: all are gone, fails now");
}

TEST(StatusAlarmsTest, SaysInWhosePlaceAWorkerIsAwaitedAndSinceWhen) {
  v1::RunStatus status = ExampleStatus();
  status.mutable_missing()->set_gone_seconds(12);
  status.mutable_missing()->set_fails_in_seconds(48);
  status.mutable_missing()->add_workers(2);
  EXPECT_EQ(MissingText(status),
            "waiting for another worker in place of worker 2, gone for 12.0 s, fails in 48.0 s");

  status.mutable_missing()->add_workers(3);
  EXPECT_EQ(
      MissingText(status),
      "waiting for other workers in place of workers 2 and 3, gone for 12.0 s, fails in 48.0 s");
}

TEST(StatusAlarmsTest, SaysHowManyMoreWorkersTheRunNeeds) {
  v1::RunStatus status = ExampleStatus();
  status.mutable_missing()->set_gone_seconds(12);
  status.mutable_missing()->set_fails_in_seconds(48);
  status.mutable_missing()->set_more_workers(2);

  EXPECT_EQ(MissingText(status),
            "waiting for 2 more workers (cluster.min_workers), for 12.0 s by now, fails in 48.0 s");
}

TEST(StatusAlarmsTest, NamesAggregatorsThatAreWaitedFor) {
  v1::RunStatus status;
  status.set_phase(v1::WAITING_FOR_SERVERS);
  status.mutable_missing()->set_fails_in_seconds(59);
  status.mutable_missing()->add_aggregators()->set_group(1);
  EXPECT_EQ(MissingText(status), "waiting for aggregator 1.0, fails in 59.0 s");

  v1::MissingMembers::Aggregator& other = *status.mutable_missing()->add_aggregators();
  other.set_group(1);
  other.set_shard(1);
  status.set_phase(v1::INITIALIZING);
  EXPECT_EQ(MissingText(status),
            "waiting for aggregators 1.0 and 1.1 to learn the run's members, fails in 59.0 s");
}

TEST(StatusAlarmsTest, SaysOnceWhyWorkersAreDead) {
  v1::RunStatus status = ExampleStatus();
  for (v1::WorkerStatus& worker : *status.mutable_workers()) {
    worker.set_state("dead");
    worker.set_failure("unheard of for more than its lease of 5s");
  }
  EXPECT_THAT(
      StatusAlarms(status),
      ElementsAre(ScreenLine{"workers 0 and 1 are dead: unheard of for more than its lease of 5s",
                             LineStyle::kAlarm}));

  status.mutable_workers(0)->set_state("live");
  EXPECT_EQ(StatusAlarms(status).at(0).text,
            "worker 1 is dead: unheard of for more than its lease of 5s");
}

TEST(StatusAlarmsTest, NamesAWorkerThatLivesAndDoesNothing) {
  v1::RunStatus status = ExampleStatus();
  v1::WorkerStatus& worker = *status.mutable_workers(1);
  worker.set_is_stalled(true);
  worker.set_idle_seconds(40);
  worker.set_is_straggler(true);  // The same once more.

  EXPECT_THAT(StatusAlarms(status),
              ElementsAre(ScreenLine{"worker 1 is stalled: it lives, and has neither fetched nor "
                                     "pushed for 40.0 s; see what its program waits for, such as "
                                     "examples",
                                     LineStyle::kAlarm}));
  EXPECT_EQ(AwaitedText(status), "; worker 1 has not pushed");
}

TEST(StatusAlarmsTest, PutsTheWorstFirst) {
  v1::RunStatus status = ExampleStatus();
  status.mutable_workers(0)->set_is_straggler(true);
  status.mutable_workers(0)->set_straggler_reason("its steps take 5 s");
  status.mutable_workers(1)->set_state("dead");
  v1::WaitingRound& round = *status.add_waiting_rounds();
  round.set_shard(1);
  round.set_version(101);
  round.set_contributions(2);
  round.set_round_size(4);
  round.set_open_seconds(12.84);
  round.set_unchanged_seconds(12.41);
  round.set_outlook("closes when workers 1 and 3 push");
  AddMissingServer(0, "a:1", status);
  status.mutable_shards(0)->set_push_log_failure("No space left on device");

  std::vector<std::string> texts;
  for (const ScreenLine& line : StatusAlarms(status)) texts.push_back(line.text);

  EXPECT_THAT(texts, ElementsAre("waiting for server 0 (a:1), silent for 200 ms, fails in 1m52s",
                                 "worker 1 is dead", "worker 0 is a straggler: its steps take 5 s",
                                 "shard 1 has 2 of 4 gradients, none new for 12.4 s: closes when "
                                 "workers 1 and 3 push (version 101, open for 12.8 s)",
                                 "shard 0: No space left on device"));
}

/// Returns the status of a run that saves a checkpoint every ten seconds.
v1::RunStatus StatusWithCheckpoints() {
  v1::RunStatus status = ExampleStatus();
  status.set_checkpoint_interval_seconds(10);
  for (v1::ShardStatus& shard : *status.mutable_shards()) {
    shard.mutable_checkpoint()->set_version(90);
    shard.mutable_checkpoint()->set_age_seconds(60);
  }
  return status;
}

TEST(StatusAlarmsTest, NamesTheShardWhoseCheckpointIsOverdue) {
  v1::RunStatus status = StatusWithCheckpoints();
  EXPECT_THAT(StatusAlarms(status), IsEmpty()) << "one that is slow to write";
  status.mutable_shards(1)->mutable_checkpoint()->set_age_seconds(61);
  EXPECT_THAT(StatusAlarms(status),
              ElementsAre(ScreenLine{"the last checkpoint of shard 1 is 1m01s old, and one is due "
                                     "every 10.0 s",
                                     LineStyle::kWarning}));

  status.mutable_shards(1)->clear_checkpoint();
  EXPECT_THAT(StatusAlarms(status), IsEmpty()) << "the run has just begun";
  status.set_seconds(61);
  EXPECT_EQ(StatusAlarms(status).at(0).text,
            "shard 1 has no checkpoint after 1m01s, and one is due every 10.0 s");

  status.set_phase(v1::FINISHED);
  EXPECT_THAT(StatusAlarms(status), IsEmpty());
}

TEST(StatusAlarmsTest, SaysWhyAShardCouldNotSaveACheckpoint) {
  v1::RunStatus status = StatusWithCheckpoints();
  status.mutable_shards(0)->set_checkpoint_failure("disk\nfull");
  status.mutable_shards(1)->set_checkpoint_failure("disk full");
  status.mutable_shards(1)->clear_checkpoint();

  EXPECT_THAT(
      StatusAlarms(status),
      ElementsAre(ScreenLine{"shard 0 cannot write or read its checkpoints, of which the last is "
                             "1m00s old: disk full",
                             LineStyle::kAlarm},
                  ScreenLine{"shard 1 cannot write or read its checkpoints, of which none is "
                             "known: disk full",
                             LineStyle::kAlarm}));
}

TEST(StatusAlarmsTest, SaysThatAllWaitForTheDiskOfTheCoordinator) {
  v1::RunStatus status;
  status.set_state_not_kept("disk\nfull");

  EXPECT_THAT(StatusAlarms(status),
              ElementsAre(ScreenLine{"server 0 cannot write coordinator.state, and all wait for "
                                     "that: disk full",
                                     LineStyle::kAlarm}));
}

TEST(StatusAlarmsTest, NamesTheShardWhoseLogIsSlow) {
  v1::RunStatus status = StatusWithCheckpoints();
  status.mutable_shards(1)->mutable_log()->set_batch_seconds(1);
  EXPECT_THAT(StatusAlarms(status), IsEmpty());

  status.mutable_shards(1)->mutable_log()->set_batch_seconds(1.2);

  EXPECT_THAT(StatusAlarms(status),
              ElementsAre(ScreenLine{"the log of shard 1 takes 1.20 s for a batch, and its pushes "
                                     "wait for that: its disk is slow",
                                     LineStyle::kWarning}));
}

TEST(StatusAlarmsTest, TellsOfAShardUntilItHasMadeAsManyVersionsAsItLost) {
  v1::RunStatus status = StatusWithCheckpoints();
  v1::ShardStatus& shard = *status.mutable_shards(1);
  shard.set_generation(1);
  shard.set_returned_to(90);
  shard.set_versions_lost(30);
  EXPECT_THAT(
      StatusAlarms(status),
      ElementsAre(ScreenLine{"shard 1 went on from its checkpoint of version 90 (generation 1); "
                             "it has lost at least 30 versions so far",
                             LineStyle::kWarning}));

  shard.set_version(120);
  EXPECT_THAT(StatusAlarms(status), IsEmpty());

  shard.set_version(119);
  status.set_phase(v1::FINISHED);
  EXPECT_THAT(StatusAlarms(status), IsEmpty());
}

TEST(StatusAlarmsTest, NamesTheMiniBatchesThatWereLeftOut) {
  v1::RunStatus status = ExampleStatus();
  v1::NonfiniteStatus& nonfinite = *status.mutable_workers(1)->mutable_nonfinite();
  nonfinite.set_total(3);
  nonfinite.set_in_a_row(2);
  nonfinite.set_batch(531);
  nonfinite.set_what("a loss of nan");

  EXPECT_EQ(StatusAlarms(status).at(0).text,
            "worker 1 left out 3 mini-batches without finite numbers, 2 in a row by now; the last, "
            "mini-batch 531, gave a loss of nan");
}

TEST(StatusAlarmsTest, NamesShardsThatBeganWithOtherCheckpoints) {
  v1::RunStatus status;
  for (const char* const from :
       {"", "run ab, version 9", "run ab, version 9", "run ab, version 8"}) {
    v1::ShardStatus& shard = *status.add_shards();
    shard.set_shard(static_cast<uint32_t>(status.shards_size()) - 1);
    shard.set_started_from(from);
  }

  const std::vector<ScreenLine> alarms = StatusAlarms(status);

  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].text,
            "shard 3 has begun with run ab, version 8, and shard 1 with run ab, version 9 "
            "(training.start_from): their directories differ");
}

}  // namespace
}  // namespace slipstream
