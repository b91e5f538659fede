#include "worker/member/model_asking.h"

#include <gtest/gtest.h>

#include <string>

#include "common/wire/control_wire.h"

namespace slipstream {
namespace {

TensorLayout TheLayout() {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("all", {100}).ok());
  return layout;
}

v1::PrepareModelReply Reply(v1::PrepareModelReply::State state, uint64_t grant = 0) {
  v1::PrepareModelReply reply;
  reply.set_state(state);
  reply.set_grant(grant);
  *reply.mutable_shard_map() = ToWire(ShardMap::Cut(TheLayout(), 1).value());
  return reply;
}

class ModelAskingTest : public testing::Test {
 protected:
  void TakeGrant(uint64_t grant) {
    const auto model = asking_.OnReply(Reply(v1::PrepareModelReply::GRANTED, grant));
    ASSERT_TRUE(model.ok() && model->has_value());
    ASSERT_EQ((*model)->grant, grant);
  }

  const absl::Status ended_ = absl::FailedPreconditionError("the grant has ended");
  ModelAsking asking_{{.run = 5, .worker = WorkerId{1}}, {.layout = TheLayout(), .examples = 9}};
};

TEST_F(ModelAskingTest, TheModelIsProposedOnceAndAskedForUntilItIsThere) {
  EXPECT_TRUE(asking_.Request().has_layout());

  EXPECT_EQ(asking_.OnReply(Reply(v1::PrepareModelReply::WAIT)).value(), std::nullopt);

  EXPECT_FALSE(asking_.Request().has_layout());
  EXPECT_EQ(asking_.Request().examples(), 9u);
  const auto model = asking_.OnReply(Reply(v1::PrepareModelReply::READY));
  ASSERT_TRUE(model.ok() && model->has_value());
  EXPECT_EQ((*model)->map.parameters(), 100u);
}

TEST_F(ModelAskingTest, AMapOfAnotherModelIsTheCoordinatorsFault) {
  v1::PrepareModelReply reply = Reply(v1::PrepareModelReply::READY);
  reply.mutable_shard_map()->clear_ranges();
  EXPECT_EQ(asking_.OnReply(reply).status().code(), absl::StatusCode::kInternal);
}

TEST_F(ModelAskingTest, AGrantThatEndedIsNoReasonToFailUnlessItIsGivenAgain) {
  TakeGrant(3);
  EXPECT_EQ(asking_.Finish().grant(), 3u);
  EXPECT_TRUE(asking_.OnInitialized(ended_).ok());

  TakeGrant(4);
  EXPECT_TRUE(asking_.OnInitialized(ended_).ok());
  TakeGrant(4);
  EXPECT_EQ(asking_.OnInitialized(ended_), ended_);
}

TEST_F(ModelAskingTest, OtherFailuresOfTheInitializationAreTheWorkers) {
  TakeGrant(3);
  EXPECT_EQ(asking_.OnInitialized(absl::UnavailableError("gone")).code(),
            absl::StatusCode::kUnavailable);
}

TEST(LeaveRequestTest, AReasonIsCutToWhatTheCoordinatorTakes) {
  const v1::LeaveRequest request =
      LeaveRequestOf({.run = 5}, std::string(5000, 'x'), true, {{.id = 1, .batches_done = 2}});
  EXPECT_LE(request.failure().size(), 1000u);
  EXPECT_TRUE(request.ends_run());
  EXPECT_EQ(request.progress(0).batches_done(), 2u);
}

}  // namespace
}  // namespace slipstream
