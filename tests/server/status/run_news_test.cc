#include "server/status/run_news.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/log_line.h"

namespace slipstream {
namespace {

/// A status that the test changes, and the news of one second after the other.
class RunNewsTest : public testing::Test {
 protected:
  RunNewsTest() {
    status_.set_phase(v1::TRAINING);
    for (uint32_t id = 0; id < 2; ++id) status_.add_shards()->set_shard(id);
    for (uint32_t id = 0; id < 2; ++id) status_.add_workers()->set_worker(id);
  }

  /// Returns the news after so many seconds, one a line; those of warnings begin with "! ".
  std::string After(int seconds) {
    now_ += absl::Seconds(seconds);
    std::string lines;
    for (const CoordinatorNotes::Note& note : news_.Update(status_, now_)) {
      EXPECT_NE(note.kind, EventKind::kNone);
      lines += (note.is_warning ? "! " : "") + TextOf(note.line) + "\n";
    }
    return lines;
  }

  void Refuse(int shard, const char* outcome, uint64_t count) {
    (*status_.mutable_shards(shard)->mutable_outcomes())[outcome] += count;
  }

  void Save(int shard, uint64_t version) {
    status_.mutable_shards(shard)->mutable_checkpoint()->set_version(version);
  }

  absl::Time now_ = absl::UnixEpoch();
  v1::RunStatus status_;
  RunNews news_{2};
};

TEST_F(RunNewsTest, TellsOfAServerThatIsSilentAndOfItsReturn) {
  EXPECT_EQ(After(1), "");
  v1::MissingMembers::Server& server = *status_.mutable_missing()->add_servers();
  server.set_shard(1);
  server.set_address("b:2");

  EXPECT_EQ(After(1), "! server silent shard=1 address=b:2\n");
  EXPECT_EQ(After(5), "");
  status_.clear_missing();
  EXPECT_EQ(After(1), "server heard again shard=1 seconds=6\n");
}

TEST_F(RunNewsTest, NobodyIsSilentBeforeTheyCameAndAfterTheRun) {
  for (const v1::Phase phase : {v1::WAITING_FOR_SERVERS, v1::FINISHED, v1::FAILED}) {
    status_.set_phase(phase);
    status_.mutable_missing()->add_servers();
    EXPECT_EQ(After(1), "") << phase;
  }
}

TEST_F(RunNewsTest, AStragglerEndsOnceItIsNoneForAWhile) {
  v1::WorkerStatus& worker = *status_.mutable_workers(1);
  worker.set_is_straggler(true);
  worker.set_straggler_reason("its steps take 2.0 s");
  EXPECT_EQ(After(1), "! worker is a straggler worker=1 reason=\"its steps take 2.0 s\"\n");
  for (int i = 0; i < 5; ++i) {
    worker.set_is_straggler(i % 2 == 0);  // It is on the edge.
    EXPECT_EQ(After(1), "");
  }

  worker.set_is_straggler(false);

  EXPECT_EQ(After(9), "");
  EXPECT_EQ(After(1), "worker is no straggler any more worker=1 seconds=5\n");
}

TEST_F(RunNewsTest, ManyRefusalsAreOneEventInTenSeconds) {
  Refuse(0, "FENCED", 1000);
  EXPECT_EQ(After(1), "") << "they are from before";
  Refuse(0, "FENCED", 5);
  Refuse(1, "FENCED", 5);
  Refuse(1, "APPLIED", 5000);
  EXPECT_EQ(After(1), "") << "too few";
  Refuse(0, "FENCED", 6);
  Refuse(1, "FENCED", 5);
  Refuse(1, "NONFINITE", 40);

  EXPECT_EQ(After(1),
            "! pushes are refused in bulk outcome=FENCED pushes=11 in_seconds=1 in_all=1021\n"
            "! pushes are refused in bulk outcome=NONFINITE pushes=40 in_seconds=1 "
            "in_all=40\n");
  for (int i = 0; i < 9; ++i) {
    Refuse(0, "FENCED", 500);
    EXPECT_EQ(After(1), "");
  }
  (*status_.mutable_shards(0)->mutable_outcomes())["FENCED"] = 20;  // Of another process.
  EXPECT_EQ(After(1),
            "! pushes are refused in bulk outcome=FENCED pushes=20 in_seconds=1 in_all=30\n");
}

TEST_F(RunNewsTest, ACheckpointIsCompleteOnceAllShardsHaveIt) {
  Save(0, 10);
  Save(1, 10);
  EXPECT_EQ(After(1), "") << "they are from before";
  Save(0, 20);
  EXPECT_EQ(After(1), "");
  Save(1, 20);
  EXPECT_EQ(After(1), "checkpoint complete version=20\n");
  Save(0, 30);
  Save(1, 31);
  EXPECT_EQ(After(59), "") << "one a minute";
  EXPECT_EQ(After(1), "checkpoint complete version=30 to_version=31\n");

  Save(0, 35);
  Save(1, 35);
  EXPECT_EQ(After(1), "") << "one a minute";
  news_.AwaitCheckpoint();
  EXPECT_EQ(After(1), "") << "they are from before";
  Save(0, 40);
  Save(1, 40);
  EXPECT_EQ(After(1), "checkpoint complete version=40\n") << "an operator asked for it";
}

TEST_F(RunNewsTest, ACheckpointThatFailsIsNewsOncePerReason) {
  EXPECT_EQ(After(1), "");
  status_.mutable_shards(1)->set_checkpoint_failure("the disk is full");
  EXPECT_EQ(After(1), "! checkpoint failed shard=1 reason=\"the disk is full\"\n");
  status_.mutable_shards(1)->clear_checkpoint_failure();
  EXPECT_EQ(After(1), "");
  status_.mutable_shards(1)->set_checkpoint_failure("the disk is full");
  EXPECT_EQ(After(1), "");
  status_.mutable_shards(1)->set_checkpoint_failure("no such folder");
  EXPECT_EQ(After(1), "! checkpoint failed shard=1 reason=\"no such folder\"\n");
}

}  // namespace
}  // namespace slipstream
