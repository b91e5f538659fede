#include "worker/member/work_asking.h"

#include <gtest/gtest.h>

#include <optional>
#include <variant>

namespace slipstream {
namespace {

using State = v1::GetWorkReply;

class WorkAskingTest : public testing::Test {
 protected:
  static v1::GetWorkReply Unit(uint64_t unit, uint64_t batches) {
    v1::GetWorkReply reply;
    reply.set_state(State::UNIT);
    reply.set_unit(unit);
    reply.set_first_batch(40);
    reply.set_batches(batches);
    return reply;
  }

  static v1::GetWorkReply Stage(uint32_t stage, uint32_t since, const std::string& policy) {
    v1::GetWorkReply reply;
    reply.set_state(State::STAGE);
    reply.set_stage(stage);
    reply.set_since_stage(since);
    reply.set_policy(policy);
    return reply;
  }

  std::optional<WorkNews> News(const v1::GetWorkReply& reply, Generation generation = {}) {
    const absl::StatusOr<std::optional<WorkNews>> news = asking_.OnReply(reply, generation);
    EXPECT_TRUE(news.ok()) << news.status();
    return news.value_or(std::nullopt);
  }

  WorkAsking asking_{{.run = 5, .worker = WorkerId{1}}, {.policy = PolicyKind::kSoftsync}, 1};
};

TEST_F(WorkAskingTest, ARequestNamesTheLastUnitSoThatALostAnswerIsGivenAgain) {
  EXPECT_EQ(asking_.Request({}, {}).newest_unit(), 0u);

  const std::optional<WorkNews> news = News(Unit(3, 2));

  EXPECT_EQ(std::get<WorkUnit>(news.value()), (WorkUnit{3, 40, 2}));
  EXPECT_EQ(asking_.Request({{.id = 3, .batches_done = 1}}, {}).newest_unit(), 3u);
  EXPECT_EQ(asking_.Request({{.id = 3, .batches_done = 1}}, {}).progress(0).batches_done(), 1u);
}

TEST_F(WorkAskingTest, AUnitThatTheCoordinatorLackedForAWhileCameLate) {
  v1::GetWorkReply none;
  none.set_state(State::WAIT);
  EXPECT_EQ(News(none), std::nullopt);

  EXPECT_TRUE(std::get<WorkUnit>(News(Unit(3, 2)).value()).came_late);
  EXPECT_FALSE(std::get<WorkUnit>(News(Unit(4, 2)).value()).came_late);
}

TEST_F(WorkAskingTest, AUnitWithoutBatchesIsTheCoordinatorsFault) {
  EXPECT_EQ(asking_.OnReply(Unit(3, 0), {}).status().code(), absl::StatusCode::kInternal);
}

TEST_F(WorkAskingTest, AStageSaysWhatItAsksOfTheWorkerAndIsHeardOnce) {
  const std::optional<WorkNews> news = News(Stage(1, 1, "hardsync"));

  const auto& next = std::get<NextStage>(news.value());
  EXPECT_EQ(next.stage.number, 1u);
  EXPECT_TRUE(next.stage.in_step);
  EXPECT_EQ(next.policy, "hardsync");
  EXPECT_EQ(asking_.Request({}, {}).stage(), 1u);
  EXPECT_EQ(News(Stage(1, 1, "hardsync")), std::nullopt);
}

TEST_F(WorkAskingTest, AStageThatTheWorkerCannotGoOverToChangesNothing) {
  for (const auto& stage :
       {Stage(1, 1, "unheard_of"), Stage(1, 2, "async"), Stage(1, 0, "hardsync")}) {
    EXPECT_EQ(asking_.OnReply(stage, {}).status().code(), absl::StatusCode::kInternal);
    EXPECT_EQ(asking_.Request({}, {}).stage(), 0u);
  }
}

TEST_F(WorkAskingTest, AGenerationIsNewsIfTheWorkerDoesNotKnowIt) {
  v1::GetWorkReply reply;
  reply.set_state(State::RETURNED);
  reply.set_generation(2);

  EXPECT_EQ(std::get<ShardsReturned>(News(reply, Generation{1}).value()).generation, Generation{2});
  EXPECT_EQ(News(reply, Generation{2}), std::nullopt);
}

TEST_F(WorkAskingTest, WaitIsNoNewsAndTheEndIs) {
  v1::GetWorkReply reply;
  reply.set_state(State::WAIT);
  EXPECT_EQ(News(reply), std::nullopt);
  reply.set_state(State::FINISHED);
  EXPECT_TRUE(std::holds_alternative<NoMoreUnits>(News(reply).value()));
}

}  // namespace
}  // namespace slipstream
