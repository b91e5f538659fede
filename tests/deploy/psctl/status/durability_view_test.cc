#include "deploy/psctl/status/durability_view.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

v1::CheckpointStatus Checkpoint(uint64_t version) {
  v1::CheckpointStatus checkpoint;
  checkpoint.set_version(version);
  checkpoint.set_bytes(uint64_t{3} << 20);
  checkpoint.set_write_seconds(0.25);
  return checkpoint;
}

TEST(DurabilityViewTest, TellsWhatEachShardHasSavedOrWhyNot) {
  v1::SaveCheckpointReply reply;
  v1::ShardSaveStatus& first = *reply.add_shards();
  first.set_has_saved(true);
  *first.mutable_checkpoint() = Checkpoint(120);
  v1::ShardSaveStatus& second = *reply.add_shards();
  *second.mutable_checkpoint() = Checkpoint(90);
  second.set_reason("no space\x1b[2J");
  reply.add_shards()->set_reason("its server is silent");

  EXPECT_EQ(SavesText(reply),
            "shard 0: version 120, 3.0 MiB, written in 250 ms\n"
            "shard 1: not saved, and its last checkpoint has version 90: no space\uFFFD[2J\n"
            "shard 2: not saved, and it has no checkpoint: its server is silent\n");
}

TEST(DurabilityViewTest, TellsWhatADrainedServerLeaves) {
  v1::DrainReply reply;
  reply.set_version(124);
  EXPECT_EQ(DrainedText(0, reply),
            "server 0 has drained at version 124; its process has made no checkpoint\n");

  *reply.mutable_checkpoint() = Checkpoint(124);
  EXPECT_EQ(DrainedText(1, reply),
            "server 1 has drained at version 124; its newest checkpoint has this version\n");

  *reply.mutable_checkpoint() = Checkpoint(120);
  reply.mutable_log();
  EXPECT_EQ(DrainedText(1, reply),
            "server 1 has drained at version 124 or beyond; its newest checkpoint has version 120; "
            "its log has all that it has told\n");

  reply.clear_log();
  reply.set_checkpoint_failure("no space");
  EXPECT_EQ(DrainedText(1, reply),
            "server 1 has drained at version 124; its newest checkpoint has version 120; the last "
            "try to make one failed: no space\n");
}

TEST(DurabilityViewTest, NamesNoVersionOfAServerThatHadYetToGoOn) {
  EXPECT_EQ(DrainedText(1, v1::DrainReply()),
            "server 1 has drained; its process has made no checkpoint\n");
}

}  // namespace
}  // namespace slipstream
