#include "server/core/coordinator/initialization.h"

#include <gtest/gtest.h>

#include <string>

namespace slipstream {
namespace {

using Data = Initialization::Data;

const Data kData{1000, 42, {}};

Identity Client(uint32_t worker, uint64_t incarnation = 1) {
  return {7, WorkerId{worker}, Incarnation{incarnation}};
}

TensorLayout Layout(uint64_t rows = 10) {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("weights", {rows, 20}).ok());
  EXPECT_TRUE(layout.Append("bias", {20}).ok());
  return layout;
}

std::string Refusal(Initialization& initialization, const TensorLayout& layout, const Data& data) {
  return std::string(initialization.Propose(Client(9), layout, data).message());
}

TEST(InitializationTest, TheSettingsMayFixTheExamplesOfAnEpoch) {
  Initialization initialization(2, {}, 640);
  const uint64_t others = 641;

  EXPECT_EQ(initialization.Propose(Client(0), Layout(500), {others, 0, {}}).message(),
            "the training set has 641 examples, the run's has 640");
  ASSERT_TRUE(initialization.Propose(Client(1), Layout(500), {0, 0, {}}).ok());
  ASSERT_TRUE(initialization.Propose(Client(2), Layout(500), {640, 7, {}}).ok());
  EXPECT_FALSE(initialization.Propose(Client(3), Layout(500), {others, 0, {}}).ok());
  EXPECT_EQ(initialization.model()->data.examples, 640u);
}

TEST(InitializationTest, FrozenTensorsAreTheSameForAllWorkers) {
  Initialization initialization(2);
  ASSERT_TRUE(initialization.Propose(Client(0), Layout(), {1000, 42, {{"body", 7}}}).ok());

  EXPECT_TRUE(initialization.Propose(Client(1), Layout(), {1000, 42, {{"body", 7}}}).ok());
  EXPECT_EQ(
      Refusal(initialization, Layout(), {1000, 42, {{"body", 8}}}),
      "\"body\", which needs no gradients, has other values than the worker's that came first: "
      "load the same ones in each");
  EXPECT_EQ(Refusal(initialization, Layout(), kData),
            "\"body\" needs no gradients in the run's model, and this one lacks it");
  EXPECT_EQ(Refusal(initialization, Layout(), {1000, 42, {{"body", 7}, {"head", 7}}}),
            "\"head\" needs no gradients, and the run's model lacks it");
}

TEST(InitializationTest, GrantsOneClientAtATimeInOrderOfAsking) {
  Initialization initialization(2);
  ASSERT_TRUE(initialization.Propose(Client(3), Layout(), kData).ok());
  ASSERT_TRUE(initialization.Propose(Client(1), Layout(), kData).ok());

  EXPECT_TRUE(initialization.GrantNext());
  EXPECT_FALSE(initialization.GrantNext());
  EXPECT_EQ(initialization.grant()->holder, Client(3));
  EXPECT_EQ(initialization.grant()->number, 1u);
}

TEST(InitializationTest, AClientNamesTheModelOnce) {
  Initialization initialization(2);
  EXPECT_EQ(initialization.ProposeAgain(Client(3)).message(),
            "layout: a worker names it in its first PrepareModel");
  ASSERT_TRUE(initialization.Propose(Client(3), Layout(), kData).ok());

  EXPECT_TRUE(initialization.ProposeAgain(Client(3)).ok());
  EXPECT_FALSE(initialization.ProposeAgain(Client(1)).ok());

  initialization.Forget(WorkerId{3});
  EXPECT_FALSE(initialization.ProposeAgain(Client(3, 2)).ok()) << "another process, another model";
}

TEST(InitializationTest, GrantsAnewUnderAHigherNumberWhenTheHolderDies) {
  Initialization initialization(2);
  ASSERT_TRUE(initialization.Propose(Client(0), Layout(), kData).ok());
  ASSERT_TRUE(initialization.Propose(Client(1), Layout(), kData).ok());
  ASSERT_TRUE(initialization.GrantNext());

  initialization.Forget(WorkerId{0});

  ASSERT_TRUE(initialization.GrantNext());
  EXPECT_EQ(initialization.grant()->holder, Client(1));
  EXPECT_EQ(initialization.grant()->number, 2u);
  EXPECT_FALSE(initialization.Finish(Client(0), 1).ok());
  EXPECT_FALSE(initialization.Finish(Client(1), 1).ok());
  EXPECT_TRUE(initialization.Finish(Client(1), 2).ok());
  EXPECT_TRUE(initialization.finished());
}

TEST(InitializationTest, RefusesAnotherLayoutByTensorAndShape) {
  Initialization initialization(2);
  ASSERT_TRUE(initialization.Propose(Client(0), Layout(), kData).ok());
  TensorLayout longer = Layout();
  ASSERT_TRUE(longer.Append("extra", {1}).ok());

  EXPECT_EQ(Refusal(initialization, Layout(11), kData),
            "tensor 0 is \"weights\" [11, 20], the run's is \"weights\" [10, 20]");
  EXPECT_EQ(Refusal(initialization, longer, kData), "the model has 3 tensors, the run's has 2");
}

TEST(InitializationTest, RefusesAnotherTrainingSetByName) {
  Initialization initialization(2);
  ASSERT_TRUE(initialization.Propose(Client(0), Layout(), kData).ok());

  EXPECT_EQ(Refusal(initialization, Layout(), {999, 42}),
            "the training set has 999 examples, the run's has 1000");
  EXPECT_EQ(Refusal(initialization, Layout(), {1000, 43}),
            "the training set has fingerprint 000000000000002b, the run's has 000000000000002a");
}

TEST(InitializationTest, RefusesWhatCannotBeTrained) {
  Initialization initialization(300);  // More than the layout has values.

  EXPECT_FALSE(initialization.Propose(Client(0), Layout(), kData).ok());
  EXPECT_FALSE(initialization.Propose(Client(0), Layout(500), {0, 42}).ok());
  EXPECT_FALSE(initialization.Propose(Client(0), Layout(500), {kExamplesMax + 1, 42}).ok());
  EXPECT_FALSE(initialization.model().has_value());
}

TEST(InitializationTest, AModelThatOnlyAGoneClientNamedIsForgotten) {
  Initialization initialization(1);
  ASSERT_TRUE(initialization.Propose(Client(0), Layout(11), kData).ok());

  initialization.Forget(WorkerId{0});

  EXPECT_TRUE(initialization.Propose(Client(1), Layout(10), kData).ok());
}

TEST(InitializationTest, AModelIsFinalFromTheFirstGrantOn) {
  Initialization initialization(1);
  ASSERT_TRUE(initialization.Propose(Client(0), Layout(11), kData).ok());
  ASSERT_TRUE(initialization.GrantNext());

  initialization.Forget(WorkerId{0});

  EXPECT_FALSE(initialization.Propose(Client(1), Layout(10), kData).ok());
}

TEST(InitializationTest, RepeatingTheFinishHasNoEffectAndNobodyIsGrantedAfterIt) {
  Initialization initialization(1);
  ASSERT_TRUE(initialization.Propose(Client(0), Layout(), kData).ok());
  ASSERT_TRUE(initialization.GrantNext());
  ASSERT_TRUE(initialization.Finish(Client(0), 1).ok());

  EXPECT_TRUE(initialization.Finish(Client(0), 1).ok());
  ASSERT_TRUE(initialization.Propose(Client(1), Layout(), kData).ok());
  EXPECT_FALSE(initialization.GrantNext());
}

TEST(InitializationTest, LostWeightsAreGrantedAnew) {
  Initialization initialization(1);
  ASSERT_TRUE(initialization.Propose(Client(0), Layout(), kData).ok());
  ASSERT_TRUE(initialization.GrantNext());
  ASSERT_TRUE(initialization.Finish(Client(0), 1).ok());

  initialization.Restart();
  ASSERT_TRUE(initialization.Propose(Client(0), Layout(), kData).ok());

  EXPECT_TRUE(initialization.GrantNext());
  EXPECT_EQ(initialization.grant()->number, 2u);
  EXPECT_FALSE(initialization.finished());
}

}  // namespace
}  // namespace slipstream
