#include "deploy/psctl/checkpoint/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/layout/tensor_parts.h"
#include "common/model_file/model_file.h"
#include "server/storage/checkpoint_store.h"
#include "server/storage/posix_disk.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using Action = CheckpointArguments::Action;

constexpr uint64_t kRun = 0xab;

/// Two shards, which cut a tensor.
constexpr ParameterRange kRanges[] = {{0, 48}, {48, 90}};

TensorLayout Model() {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("fc1.weight", {8, 10}).ok());
  EXPECT_TRUE(layout.Append("fc1.bias", {10}).ok());
  return layout;
}

/// Returns the weights of a version: 1000 for each version, and the place.
std::vector<float> Weights(uint64_t version) {
  std::vector<float> weights(90);
  std::iota(weights.begin(), weights.end(), 1000.0f * static_cast<float>(version));
  return weights;
}

class CheckpointCommandTest : public testing::Test {
 protected:
  CheckpointCommandTest() { RemoveAll(); }
  ~CheckpointCommandTest() override { RemoveAll(); }

  void RemoveAll() {
    fs::remove_all(directory_);
    fs::remove_all(resharded_);
  }

  void Save(uint32_t shard, uint64_t generation, uint64_t version, uint64_t run = kRun) {
    auto store = CheckpointStore::Open(disk_, directory_, run, ShardId{shard}).value();
    const std::vector<float> all = Weights(version);
    const ParameterRange& range = kRanges[shard];
    const CheckpointArray weights = {
        "weights", std::span<const float>(all).subspan(range.begin, range.size())};
    ASSERT_TRUE(
        store
            ->Save({.run = run,
                    .shard = ShardId{shard},
                    .range = range,
                    .saved = {.generation = Generation{generation}, .version = Version{version}}},
                   PartOf(Model(), range), "state", {&weights, 1})
            .ok());
  }

  std::string PathOf(uint32_t shard, const std::string& name) const {
    return directory_ + "/00000000000000ab/shard-" + std::to_string(shard) + "/" + name;
  }

  /// Carries out the command, and returns its exit code. What it prints is in out_ and err_.
  int Do(CheckpointArguments arguments) {
    if (arguments.directory.empty()) arguments.directory = directory_;
    if (arguments.action == Action::kExport) arguments.output = output_;
    if (arguments.action == Action::kReshard) arguments.output = resharded_;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = CheckpointCommand(arguments);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return code;
  }

  /// Expects that the exported file is the whole model with the weights.
  void ExpectExported(const std::vector<float>& expected) {
    const absl::StatusOr<ModelFile> file = ModelFile::Open(output_);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->layout(), Model());
    std::vector<float> weights(expected.size());
    EXPECT_TRUE(file->Read(Model(), weights).ok());
    EXPECT_EQ(weights, expected);
  }

  const std::string directory_ =
      testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string output_ = directory_ + "/model.safetensors";
  const std::string resharded_ = directory_ + "-resharded";
  PosixDisk disk_;
  std::string out_;
  std::string err_;
};

TEST_F(CheckpointCommandTest, ListsWhatEachShardHas) {
  Save(0, 0, 5);
  Save(0, 0, 9);
  Save(1, 0, 5);
  fs::create_directories(PathOf(1, "checkpoint-0-9.unfinished"));
  fs::create_directories(PathOf(1, "checkpoint-0-10"));

  ASSERT_EQ(Do({.action = Action::kLs, .format = OutputFormat::kJson}), 0) << err_;

  const auto list = nlohmann::json::parse(out_);
  ASSERT_EQ(list.size(), 4u) << out_;
  EXPECT_EQ(list[0]["run"], "00000000000000ab");
  EXPECT_EQ(list[0]["version"], 5);
  EXPECT_EQ(list[0]["on_all_shards"], true);
  EXPECT_EQ(list[0]["state"], "ok");
  EXPECT_EQ(list[1]["version"], 9);
  EXPECT_EQ(list[1]["on_all_shards"], false);
  EXPECT_EQ(list[3]["shard"], 1);
  EXPECT_EQ(list[3]["state"], PathOf(1, "checkpoint-0-10/MANIFEST: is missing"));
  ASSERT_EQ(Do({.action = Action::kLs}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("on all shards"), HasSubstr("00000000000000ab")));
}

TEST_F(CheckpointCommandTest, SaysThatThereAreNone) {
  EXPECT_EQ(Do({.action = Action::kLs, .directory = "/no/such"}), 74);
  EXPECT_EQ(err_, "psctl: error: cannot list /no/such: No such file or directory\n");
  fs::create_directories(directory_);
  EXPECT_EQ(Do({.action = Action::kVerify}), 74);
  EXPECT_EQ(err_, "psctl: error: " + directory_ + " has no checkpoints\n");
}

TEST_F(CheckpointCommandTest, VerifiesAllAndNamesTheDamage) {
  Save(0, 0, 5);
  Save(1, 0, 5);
  EXPECT_EQ(Do({.action = Action::kVerify}), 0);
  EXPECT_THAT(out_, HasSubstr(PathOf(1, "checkpoint-0-5") + ": sound, "));

  std::fstream(PathOf(1, "checkpoint-0-5/weights.safetensors"), std::ios::in | std::ios::out)
      << '!';
  EXPECT_EQ(Do({.action = Action::kVerify}), 74);
  EXPECT_THAT(out_, HasSubstr(PathOf(0, "checkpoint-0-5") + ": sound, "));
  EXPECT_THAT(err_, HasSubstr(PathOf(1, "checkpoint-0-5/weights.safetensors") +
                              ": damaged: the checksum of bytes 0 to "));
}

TEST_F(CheckpointCommandTest, RedoesNoLogWithoutTheSettingsOfItsRun) {
  Save(0, 0, 5);

  EXPECT_EQ(Do({.action = Action::kVerify, .replay = true}), 74);
  EXPECT_THAT(out_, HasSubstr("checkpoint-0-5: sound, "));
  EXPECT_THAT(err_, HasSubstr(" has no coordinator.state, "));
}

TEST_F(CheckpointCommandTest, InspectsOne) {
  Save(0, 0, 5);
  Save(0, 0, 9);

  EXPECT_EQ(Do({.action = Action::kInspect, .directory = PathOf(0, "checkpoint-0-9")}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("range       0:48"), HasSubstr("version     9"),
                          HasSubstr("fc1.weight[0:48 of 8x10]"), HasSubstr("state.bin")));
  EXPECT_EQ(Do({.action = Action::kInspect}), 2);
  EXPECT_THAT(
      err_, HasSubstr("there are 2 checkpoints; name one, such as " + PathOf(0, "checkpoint-0-9")));
}

TEST_F(CheckpointCommandTest, ExportsTheNewestVersionThatAllShardsHave) {
  Save(0, 0, 5);
  Save(0, 0, 7);
  Save(0, 1, 6);
  Save(1, 0, 5);
  Save(1, 0, 7);

  ASSERT_EQ(Do({.action = Action::kExport}), 0) << err_;

  EXPECT_EQ(out_, output_ + ": 2 tensors, 90 values, run 00000000000000ab, version 7\n");
  ExpectExported(Weights(7));
  EXPECT_EQ(Do({.action = Action::kExport}), 74);
  EXPECT_THAT(err_, HasSubstr("exists; --force replaces it"));
  ASSERT_EQ(Do({.action = Action::kExport, .force = true, .version = 5}), 0) << err_;
  ExpectExported(Weights(5));
  EXPECT_EQ(Do({.action = Action::kExport, .force = true, .version = 6}), 74);
  EXPECT_THAT(err_, HasSubstr("shard-1 has no checkpoint of version 6 that can be used"));
}

TEST_F(CheckpointCommandTest, SaysWhichVersionsItJoinsWhereShardsHaveNoneInCommon) {
  Save(0, 0, 5);
  Save(0, 0, 8);
  Save(1, 0, 7);

  ASSERT_EQ(Do({.action = Action::kExport}), 0) << err_;

  EXPECT_THAT(out_, HasSubstr("versions 8,7 (shards 0 and up, the newest of each)"));
  std::vector<float> expected = Weights(8);
  const std::vector<float> second = Weights(7);
  std::copy(second.begin() + 48, second.end(), expected.begin() + 48);
  ExpectExported(expected);
}

TEST_F(CheckpointCommandTest, ExportsNoModelWithoutAShardOrWithDamage) {
  Save(1, 0, 5);
  EXPECT_EQ(Do({.action = Action::kExport}), 74);
  EXPECT_THAT(err_, HasSubstr("the checkpoints of a shard are missing"));

  fs::remove_all(PathOf(1, ""));
  Save(0, 0, 5);
  EXPECT_EQ(Do({.action = Action::kExport}), 74);
  EXPECT_THAT(err_, HasSubstr("the values of fc1.weight from 48 on are missing"));

  Save(1, 0, 5);
  std::fstream(PathOf(1, "checkpoint-0-5/weights.safetensors"), std::ios::in | std::ios::out)
      << '!';
  EXPECT_EQ(Do({.action = Action::kExport}), 74);
  EXPECT_THAT(err_, HasSubstr("checksum"));
  EXPECT_FALSE(fs::exists(output_));
}

TEST_F(CheckpointCommandTest, ExportsNoMixtureOfRuns) {
  Save(0, 0, 5);
  Save(1, 0, 5, kRun + 1);
  fs::rename(directory_ + "/00000000000000ac/shard-1", PathOf(1, ""));

  EXPECT_EQ(Do({.action = Action::kVerify}), 74);
  EXPECT_THAT(err_, HasSubstr(PathOf(1, "checkpoint-0-5") + ": is the checkpoint "));
  EXPECT_EQ(Do({.action = Action::kExport}), 74);
  EXPECT_THAT(err_, HasSubstr("shard-1 has no checkpoint that can be used"));
  EXPECT_FALSE(fs::exists(output_));
}

TEST_F(CheckpointCommandTest, CutsASetForAnotherNumberOfServers) {
  Save(0, 0, 7);
  Save(1, 0, 7);

  ASSERT_EQ(Do({.action = Action::kReshard, .servers = 3}), 0) << err_;

  EXPECT_THAT(out_, AllOf(HasSubstr("/shard-2/checkpoint-0-7: values "),
                          HasSubstr("made of run 00000000000000ab, version 7\n")));
  EXPECT_EQ(Do({.action = Action::kVerify, .directory = resharded_}), 0) << err_;
  ASSERT_EQ(Do({.action = Action::kExport, .directory = resharded_}), 0) << err_;
  ExpectExported(Weights(7));
  EXPECT_EQ(Do({.action = Action::kReshard, .servers = 2}), 74);
  EXPECT_THAT(err_, HasSubstr("exists; name another directory"));
}

TEST_F(CheckpointCommandTest, CutsTheNewestOfEachWhereShardsHaveNoVersionInCommon) {
  Save(0, 0, 8);
  Save(1, 0, 7);

  ASSERT_EQ(Do({.action = Action::kReshard, .servers = 1}), 0) << err_;

  EXPECT_THAT(out_, AllOf(HasSubstr("/shard-0/checkpoint-0-8: values 0 to 90"),
                          HasSubstr("versions 8,7 (shards 0 and up, ")));
}

TEST_F(CheckpointCommandTest, TakesNoCommonVersionThatEveryShardHasLeftBehind) {
  for (const uint32_t shard : {0u, 1u}) Save(shard, 0, 0);
  Save(0, 0, 8);
  ASSERT_EQ(Do({.action = Action::kExport}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr(", version 0\n")) << "shard 1 has nothing newer";

  Save(1, 0, 7);

  ASSERT_EQ(Do({.action = Action::kExport, .force = true}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("versions 8,7"));
}

TEST_F(CheckpointCommandTest, ExportsOneOfSeveralRuns) {
  for (const uint64_t run : {kRun, kRun + 1}) {
    Save(0, 0, 5, run);
    Save(1, 0, 5, run);
  }

  EXPECT_EQ(Do({.action = Action::kExport}), 78);
  EXPECT_THAT(err_, HasSubstr("checkpoints of 2 runs, such as 00000000000000ab and "));
  EXPECT_EQ(Do({.action = Action::kExport, .directory = directory_ + "/00000000000000ab"}), 0)
      << err_;
}

}  // namespace
}  // namespace slipstream
