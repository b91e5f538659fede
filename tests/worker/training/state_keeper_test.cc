#include "worker/training/state_keeper.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/model_file/model_file.h"
#include "tests/support/captured_log.h"
#include "tests/worker/training/training_loop_fixture.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

fs::path EmptyFolder() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test.test_suite_name()) + test.name();
  std::ranges::replace(name, '/', '-');
  fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  return folder;
}

/// The state of a worker whose codec feeds errors back. Its clients are not connected.
class StateKeeperTest : public testing::Test {
 protected:
  StateKeeperTest() : folder_(EmptyFolder()) {
    TensorLayout layout;
    EXPECT_TRUE(layout.Append("all", {kValues}).ok());
    map_ = *ShardMap::Cut(layout, 2);
    settings_.wire.push_codec = Encoding::kTopK;
  }

  /// Returns the client of a process with two gradients under way.
  std::unique_ptr<ParameterClient> NewClient() {
    ParameterClient::Options options;
    options.identity = identity_;
    options.servers = {"localhost:1", "localhost:2"};
    options.map = map_;
    options.shards.push_encoding = settings_.wire.push_codec;
    return std::make_unique<ParameterClient>(
        options, std::vector<ParameterClient::Slot>(2, {weights_, gradient_, nullptr}),
        [](absl::Duration) { return true; }, cancel_);
  }

  StateKeeper::Options Options(absl::Duration interval = absl::ZeroDuration()) const {
    return {.directory = folder_,
            .interval = interval,
            .identity = identity_,
            .owner = OwnerOf(settings_, identity_, map_)};
  }

  /// Gives each error another value.
  static void Fill(ParameterClient& client) {
    float next = 1;
    for (const std::span<float> error : client.encoding_errors()) {
      for (float& value : error) value = next++;
    }
  }

  static std::vector<float> ErrorsOf(ParameterClient& client) {
    std::vector<float> all;
    for (const std::span<float> error : client.encoding_errors()) {
      all.insert(all.end(), error.begin(), error.end());
    }
    return all;
  }

  static bool AreZero(const std::vector<float>& values) {
    return std::ranges::all_of(values, [](float value) { return value == 0; });
  }

  static constexpr size_t kValues = 2500;

  CapturedLog log_;
  const fs::path folder_;
  const Identity identity_ = {.run = 5, .worker = WorkerId{1}, .incarnation = Incarnation{2}};
  ShardMap map_;
  RunSpec settings_;
  CancelSwitch cancel_;
  std::vector<float> weights_ = std::vector<float>(kValues);
  std::vector<float> gradient_ = std::vector<float>(kValues);
};

TEST_F(StateKeeperTest, AProcessGoesOnWithTheErrorsOfAllSlotsAndShards) {
  const auto first = NewClient();
  Fill(*first);
  StateKeeper(Options(), *first, nullptr).Save(30);
  const auto second = NewClient();
  StateKeeper keeper(Options(), *second, nullptr);

  keeper.Restore();

  EXPECT_EQ(ErrorsOf(*second).size(), 2 * kValues);
  EXPECT_EQ(ErrorsOf(*second), ErrorsOf(*first));
  EXPECT_EQ(log_.Count("goes on with its saved state step=30 incarnation=2"), 1);
}

TEST_F(StateKeeperTest, StepsAreCountedOverAllProcesses) {
  const auto client = NewClient();
  StateKeeper(Options(), *client, nullptr).Save(30);
  {
    StateKeeper second(Options(), *client, nullptr);
    second.Restore();
    second.Save(12);
  }

  StateKeeper(Options(), *client, nullptr).Restore();

  EXPECT_EQ(log_.Count("goes on with its saved state step=42"), 1);
}

TEST_F(StateKeeperTest, WithoutASavedStateAProcessBeginsWithNone) {
  const auto client = NewClient();

  StateKeeper(Options(), *client, nullptr).Restore();

  EXPECT_TRUE(AreZero(ErrorsOf(*client)));
  EXPECT_EQ(log_.Count("begins without a saved state"), 1);
}

TEST_F(StateKeeperTest, ADamagedStateIsNotTakenUpAndIsReplaced) {
  const auto first = NewClient();
  Fill(*first);
  StateKeeper(Options(), *first, nullptr).Save(30);
  const std::string path = StatePath(folder_, identity_);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-1, std::ios::end)
      .put('\x7f');
  const auto second = NewClient();
  {
    StateKeeper keeper(Options(), *second, nullptr);

    keeper.Restore();

    EXPECT_TRUE(AreZero(ErrorsOf(*second)));
    EXPECT_EQ(log_.Count("begins without its saved state, which the next save replaces"), 1);
    EXPECT_EQ(log_.Count(path), 2);
    keeper.Save(3);
  }
  StateKeeper(Options(), *second, nullptr).Restore();
  EXPECT_EQ(log_.Count("goes on with its saved state step=3"), 1);
}

TEST_F(StateKeeperTest, AFailedWriteIsLoggedOnceAndALaterOneSucceeds) {
  const auto client = NewClient();
  std::ofstream(folder_) << "a file where the directory should be";
  StateKeeper keeper(Options(), *client, nullptr);
  for (uint64_t step = 1; step <= 2; ++step) {
    while (!keeper.is_due()) std::this_thread::yield();
    keeper.Save(step);
  }
  while (!keeper.is_due()) std::this_thread::yield();
  EXPECT_EQ(log_.Count("cannot save its state"), 1);

  fs::remove(folder_);
  keeper.Save(3);

  log_.WaitFor("saves its state step=3");
}

TEST_F(StateKeeperTest, NothingIsDueBeforeTheInterval) {
  const auto client = NewClient();

  EXPECT_TRUE(StateKeeper(Options(), *client, nullptr).is_due());
  EXPECT_FALSE(StateKeeper(Options(absl::Hours(1)), *client, nullptr).is_due());
}

/// A worker that keeps its weights, and steps them with momentum.
class KeptStateTest : public TrainingLoopTest {
 protected:
  KeptStateTest() {
    run_.worker.algorithm = AlgorithmKind::kEamsgd;
    run_.optimizer.kind = RuleKind::kNesterov;
    run_.worker.parameters["push_every"] = 3;
    run_.cluster.workers = 4;
    run_.training.batch_size = kBatchSize;
    run_.worker.save_state.directory = EmptyFolder();
  }

  std::string Path() const { return StatePath(run_.worker.save_state.directory, identity_); }

  CapturedLog log_;
};

TEST_P(KeptStateTest, AProcessGoesOnWithItsWeightsAndItsMomentum) {
  ASSERT_TRUE(Run(12).ok());
  StateKeeper(StateOptions(), *client_, local_steps_.get()).Save(12);
  const std::unique_ptr<Plan> plan = NewPlan(*cpu_);
  const auto local = LocalSteps::Make(run_, shapes_.layout, data_.count(), *plan);
  StateKeeper keeper(StateOptions(), *client_, local.get());
  EXPECT_FALSE(keeper.is_due()) << "a worker that has not begun has no state";

  keeper.Restore();

  EXPECT_TRUE(local->is_started());
  EXPECT_TRUE(std::ranges::equal(local->kept_weights(), local_steps_->kept_weights()));
  ASSERT_EQ(local->rule_states().size(), 1u);
  EXPECT_TRUE(std::ranges::equal(local->rule_states()[0], local_steps_->rule_states()[0]));
  EXPECT_EQ(local->rule_scalars(), local_steps_->rule_scalars());
  EXPECT_NE(local->rule_states()[0].front(), 0);
}

TEST_P(KeptStateTest, TheLoopSavesBetweenPushesThatAreAnswered) {
  saves_state_ = true;
  shards_[0]->RefuseNext(v1::TOO_STALE);  // The first push uses up no sequence there.

  ASSERT_TRUE(Run(30).ok());

  state_.reset();  // Waits for the last write.
  const std::unique_ptr<Plan> plan = NewPlan(*cpu_);
  const auto local = LocalSteps::Make(run_, shapes_.layout, data_.count(), *plan);
  StateKeeper(StateOptions(), *client_, local.get()).Restore();
  EXPECT_EQ(log_.Count("goes on with its saved state"), 1);
  const absl::StatusOr<ModelFile> file = ModelFile::Open(Path());
  ASSERT_TRUE(file.ok());
  const uint64_t steps = std::stoull(file->metadata().at("steps"));
  EXPECT_GT(steps, 0u);
  EXPECT_EQ(steps % 3, 0u);
  EXPECT_EQ(file->metadata().at("pushes"), fmt::format("{},{}", steps / 3 - 1, steps / 3));
}

INSTANTIATE_TEST_SUITE_P(Plans, KeptStateTest,
                         testing::Values(Case{"OfTheProcessor", 1, false},
                                         Case{"OfADeviceWithItsOwnMemory", 1, true}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace slipstream
