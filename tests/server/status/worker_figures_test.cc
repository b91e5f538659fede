#include "server/status/worker_figures.h"

#include <gtest/gtest.h>

#include <string>

namespace slipstream {
namespace {

v1::StepTimes Step(uint64_t number, int lanes) {
  v1::StepTimes step;
  step.set_step(number);
  for (int lane = 0; lane < lanes; ++lane) step.add_lanes();
  return step;
}

TEST(WorkerFiguresTest, KeepsWhatStatusShows) {
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_examples(1);
  heartbeat.set_examples_per_second(2);
  heartbeat.set_train_loss(3);
  heartbeat.set_train_accuracy(0.5);
  heartbeat.set_compute_share(5);
  heartbeat.set_communication_share(6);
  heartbeat.set_communication_hidden(7);
  heartbeat.set_overlap(8);
  heartbeat.mutable_nonfinite()->set_what(std::string(kNonfiniteWhatBytesMax, 'a'));
  *heartbeat.add_recent_steps() = Step(9, 2);

  const auto figures = FiguresOf(heartbeat, 2);

  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_EQ(figures->SerializeAsString(), heartbeat.SerializeAsString());
}

TEST(WorkerFiguresTest, KeepsNothingElse) {
  v1::HeartbeatRequest heartbeat;
  heartbeat.mutable_identity()->set_worker(3);
  heartbeat.add_progress()->set_unit(1);
  for (uint64_t step = 0; step < 100; ++step) *heartbeat.add_recent_steps() = Step(step, 1);
  constexpr int kFromTheFuture = 1000;
  const auto add_unknown = [](google::protobuf::Message& message) {
    message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(
        kFromTheFuture, std::string(1000, 'x'));
  };
  add_unknown(heartbeat);
  add_unknown(*heartbeat.mutable_recent_steps(99));
  add_unknown(*heartbeat.mutable_nonfinite());

  const auto figures = FiguresOf(heartbeat, 1);

  ASSERT_TRUE(figures.ok()) << figures.status();
  v1::HeartbeatRequest expected;
  expected.mutable_nonfinite();
  for (uint64_t step = 92; step < 100; ++step) *expected.add_recent_steps() = Step(step, 1);
  EXPECT_EQ(figures->SerializeAsString(), expected.SerializeAsString());
}

TEST(WorkerFiguresTest, RefusesByFieldWhatNoWorkerSends) {
  v1::HeartbeatRequest talkative;
  talkative.mutable_nonfinite()->set_what(std::string(kNonfiniteWhatBytesMax + 1, 'a'));
  v1::HeartbeatRequest broad;
  *broad.add_recent_steps() = Step(1, 3);

  EXPECT_EQ(FiguresOf(talkative, 2).status(),
            absl::InvalidArgumentError("nonfinite.what has 257 bytes, at most 256"));
  EXPECT_EQ(FiguresOf(broad, 2).status(),
            absl::InvalidArgumentError("recent_steps.lanes has 3 lanes, and the run 2 shards"));
}

}  // namespace
}  // namespace slipstream
