#include "worker/training/training_plans.h"

#include <gtest/gtest.h>

#include <memory>

#include "common/model/presets.h"
#include "tests/support/fake_device.h"
#include "worker/compute/cpu/cpu_device.h"

namespace slipstream {
namespace {

constexpr size_t kParameters = 61'706;  // The parameters of lenet5.

class TrainingPlansTest : public testing::Test {
 protected:
  TrainingPlansTest() {
    settings_.model = *FindPreset("lenet5");
    settings_.training.pipeline_depth = 2;
  }

  RunSpec settings_;
  const std::unique_ptr<Device> cpu_ = NewCpuDevice();

  // A device that keeps gradients in its own memory.
  const std::unique_ptr<Device> stubborn_ = NewFakeDevice(*cpu_);
};

TEST_F(TrainingPlansTest, GradientsLieWhereShardsMayTakeThem) {
  const auto made = TrainingPlans::Prepare(*cpu_, settings_, kParameters);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_NE(made->shared_arena(), nullptr);
  ASSERT_EQ(made->plans().size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(made->plans()[i]->gradients_host().data(), made->shared_arena()->part(i).data());
  }
}

TEST_F(TrainingPlansTest, NotIfTheyGoAnotherWayOrEncoded) {
  settings_.wire.transport = WireSpec::Transport::kTcp;
  EXPECT_EQ(TrainingPlans::Prepare(*cpu_, settings_, kParameters)->shared_arena(), nullptr);
  settings_.wire = {.push_codec = Encoding::kBf16};
  EXPECT_EQ(TrainingPlans::Prepare(*cpu_, settings_, kParameters)->shared_arena(), nullptr);
}

TEST_F(TrainingPlansTest, ADeviceThatKeepsItsOwnMemoryIsGoodEnoughForAuto) {
  const auto made = TrainingPlans::Prepare(*stubborn_, settings_, kParameters);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->plans().size(), 2u);
  EXPECT_EQ(made->shared_arena(), nullptr);
}

TEST_F(TrainingPlansTest, ButNotForShmWhichSaysWhatToDo) {
  settings_.wire.transport = WireSpec::Transport::kShm;
  const auto made = TrainingPlans::Prepare(*stubborn_, settings_, kParameters);
  EXPECT_TRUE(absl::IsInvalidArgument(made.status())) << made.status();
  EXPECT_NE(made.status().message().find("use auto or unix"), std::string::npos);
}

TEST_F(TrainingPlansTest, ThreadsHavePlansOfTheirOwnAndPushFromTheFirst) {
  settings_.training.pipeline_depth = 1;
  settings_.worker = {.algorithm = AlgorithmKind::kLocalSgd, .threads = 3};
  const auto made = TrainingPlans::Prepare(*cpu_, settings_, kParameters);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_NE(made->shared_arena(), nullptr);
  ASSERT_NE(made->threads(), nullptr);
  EXPECT_EQ(made->plans().size(), 3u);
  EXPECT_EQ(made->slots(), 1u);
  EXPECT_EQ(made->slot(0).gradients_host().data(), made->shared_arena()->part(0).data());
  for (const auto& plan : made->plans()) {
    EXPECT_NE(plan->weights_host().data(), made->slot(0).weights_host().data());
  }
}

}  // namespace
}  // namespace slipstream
