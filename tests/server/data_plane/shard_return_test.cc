// Tests of a shard that goes on from a checkpoint of its own: in a new process, and in the one that
// made it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "server/storage/checkpoint_store.h"
#include "server/storage/posix_disk.h"
#include "tests/server/data_plane/shard_service_fixture.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

class ShardReturnTest : public ShardServiceTest {
 protected:
  ShardReturnTest() {
    std::filesystem::remove_all(directory_);
    durability_ = {.level = DurabilitySpec::Level::kCheckpoint, .directory = directory_};
    open_store_ = [this](uint64_t run, bool has_begun) {
      return CheckpointStore::Open(disk_, directory_, run, ShardId{0}, has_begun);
    };
  }
  ~ShardReturnTest() override { std::filesystem::remove_all(directory_); }

  /// Returns what the shard reports to the coordinator.
  v1::SyncServerRequest Report() {
    v1::SyncServerRequest report;
    service_->Describe(report);
    return report;
  }

  void AwaitSaved(uint64_t version) {
    AwaitReport(
        [&](const v1::ShardStatus&) {
          const v1::SyncServerRequest report = Report();
          return report.saved_size() > 0 && report.saved().rbegin()->version() == version;
        },
        "a checkpoint of version " + std::to_string(version));
  }

  void AwaitGeneration(uint64_t generation) {
    AwaitReport(
        [&](const v1::ShardStatus&) {
          const v1::SyncServerRequest report = Report();
          return report.initialized() && report.generation() == generation;
        },
        "generation " + std::to_string(generation));
  }

  void OrderSave(uint64_t number) {
    ++orders_.number;
    orders_.save.number = number;
    service_->OnOrders(orders_);
  }

  void OrderReturn(uint64_t generation, SavedVersion from) {
    ++orders_.number;
    orders_.returns = {{.generation = Generation{generation}, .from = from}};
    service_->OnOrders(orders_);
  }

  /// Ends the process and starts another one, which knows nothing but what is on the disk.
  void Restart() {
    EndProcess();
    const ServerOrders orders = orders_;
    Serve(kAsync, 2);
    orders_ = orders;
    service_->OnOrders(orders_);
  }

  v1::PushReply PushOnes(uint64_t sequence, uint64_t base, uint64_t generation = 0) {
    v1::PushHeader header = Header(0, sequence, base);
    header.set_generation(generation);
    return Push(header, std::vector<float>(kValues, 1.0f));
  }

  const std::string directory_ = testing::TempDir() + "/shard_return_test";
  PosixDisk disk_;
};

TEST_F(ShardReturnTest, SavesItsInitialWeightsBeforeItReportsThem) {
  Start(kAsync, 2);
  AwaitGeneration(0);
  const v1::SyncServerRequest report = Report();
  ASSERT_EQ(report.saved_size(), 1);
  EXPECT_EQ(report.saved(0).version(), 0u);
}

TEST_F(ShardReturnTest, ANewProcessGoesOnFromTheCheckpointThatIsOrdered) {
  Start(kAsync, 2);
  AwaitSaved(0);
  EXPECT_EQ(PushOnes(1, 0).outcome(), v1::APPLIED);
  OrderSave(1);
  AwaitSaved(1);
  const v1::PushReply lost = PushOnes(2, 1);
  EXPECT_EQ(lost.outcome(), v1::APPLIED);
  EXPECT_EQ(lost.durability(), v1::CHECKPOINT);

  Restart();
  EXPECT_FALSE(Report().initialized());
  AwaitSaved(1);
  OrderReturn(1, {.version = Version{1}});
  AwaitGeneration(1);

  const Pulled pulled = Pull();
  EXPECT_EQ(pulled.version, 1u);
  EXPECT_EQ(pulled.values, std::vector<float>(kValues, -1.0f));
  // The push that was lost does not count if it comes again: its generation has ended.
  const v1::PushReply again = PushOnes(2, 1);
  EXPECT_EQ(again.outcome(), v1::TOO_STALE);
  EXPECT_EQ(again.generation(), 1u);
  // Sequences begin anew.
  EXPECT_EQ(PushOnes(1, 1, 1).outcome(), v1::APPLIED);
  EXPECT_EQ(Pull(2).values, std::vector<float>(kValues, -2.0f));
}

TEST_F(ShardReturnTest, AShardThatLivesGoesBackAndTellsThoseWhoWait) {
  Start(kAsync, 2);
  AwaitSaved(0);
  EXPECT_EQ(PushOnes(1, 0).outcome(), v1::APPLIED);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::PullRequest request;
  request.set_shard_map(map());
  request.set_min_version(100);
  auto waiting = stub_->Pull(&context, request);
  AwaitReport([](const v1::ShardStatus& status) { return status.parked_pulls() == 1; },
              "a pull that waits");

  OrderReturn(1, {});
  AwaitGeneration(1);

  v1::WeightsChunk chunk;
  EXPECT_FALSE(waiting->Read(&chunk));
  EXPECT_EQ(waiting->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Pull().version, 0u);
  EXPECT_EQ(PushOnes(2, 1).outcome(), v1::TOO_STALE);
  EXPECT_EQ(PushOnes(1, 0, 1).version(), 1u);
}

TEST_F(ShardReturnTest, APushThatArrivesWhileTheShardGoesBackIsSentAgain) {
  Start(kAsync, 2);
  AwaitSaved(0);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::PushReply reply;
  auto writer = stub_->Push(&context, &reply);
  v1::PushChunk chunk = Begin(0, 1, kValues / 2);
  chunk.mutable_header()->set_pull(false);
  writer->Write(chunk);
  AwaitQueued();
  OrderReturn(1, {});
  EXPECT_FALSE(Report().initialized());

  chunk.clear_header();
  chunk.set_offset(kValues / 2);
  writer->Write(chunk);
  writer->WritesDone();

  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(reply.outcome(), v1::RETRY_LATER);
  AwaitGeneration(1);
  EXPECT_EQ(Pull().version, 0u);
}

TEST_F(ShardReturnTest, ADamagedCheckpointIsNotListedAndTheShardWaitsForOtherOrders) {
  Start(kAsync, 2);
  AwaitSaved(0);
  EXPECT_EQ(PushOnes(1, 0).outcome(), v1::APPLIED);
  OrderSave(1);
  AwaitSaved(1);
  Restart();
  AwaitSaved(1);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
    const bool is_newest = entry.path().parent_path().filename() == "checkpoint-0-1";
    if (!is_newest || entry.path().filename() != "weights.safetensors") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
  }

  OrderReturn(1, {.version = Version{1}});

  AwaitSaved(0);
  EXPECT_FALSE(Report().initialized());
  OrderReturn(1, {.version = Version{0}});
  AwaitGeneration(1);
  EXPECT_EQ(Pull().version, 0u);
}

TEST_F(ShardReturnTest, ADirectoryThatIsNotThereMayComeBack) {
  Start(kAsync, 2);
  AwaitSaved(0);
  bool is_mounted = false;
  const std::string unmounted = directory_ + "-unmounted";
  ShardService::Options options;
  options.run.durability = durability_;
  options.open_store = [&, this](uint64_t run, bool has_begun) {
    return CheckpointStore::Open(disk_, is_mounted ? directory_ : unmounted, run, ShardId{0},
                                 has_begun);
  };
  ShardService other(options);

  other.OnOrders(orders_);

  v1::SyncServerRequest before;
  other.Describe(before);
  EXPECT_EQ(before.failure(), "") << "which would end the run";
  EXPECT_FALSE(before.knows_saved());
  EXPECT_THAT(before.status().checkpoint_failure(), HasSubstr("is its disk mounted"));
  EXPECT_FALSE(std::filesystem::exists(unmounted));
  EndProcess();
  is_mounted = true;
  v1::SyncServerRequest after;
  other.Describe(after);
  EXPECT_EQ(after.saved_size(), 1);
  EXPECT_EQ(after.status().checkpoint_failure(), "");
}

TEST_F(ShardReturnTest, BeforeTrainingADiskThatCannotBeUsedEndsTheRun) {
  open_store_ = [](uint64_t, bool) -> absl::StatusOr<std::unique_ptr<CheckpointStore>> {
    return absl::DataLossError("the disk is read-only");
  };
  ShardService::Options options;
  options.run.durability = durability_;
  options.open_store = open_store_;
  ShardService service(options);
  ServerOrders orders;
  orders.run = 1;
  orders.number = 1;

  service.OnOrders(orders);

  v1::SyncServerRequest report;
  service.Describe(report);
  EXPECT_EQ(report.failure(), "the disk is read-only");
}

TEST_F(ShardReturnTest, AProcessWaitsForTheDirectoryThatAnotherOneHas) {
  Start(kAsync, 2);
  AwaitSaved(0);
  ShardService::Options options;
  options.run.durability = durability_;
  options.open_store = open_store_;
  ShardService other(options);

  other.OnOrders(orders_);

  v1::SyncServerRequest report;
  other.Describe(report);
  EXPECT_FALSE(report.knows_saved());
  EXPECT_EQ(report.failure(), "");
  EndProcess();
  other.Describe(report);
  EXPECT_TRUE(report.knows_saved());
}

}  // namespace
}  // namespace slipstream
