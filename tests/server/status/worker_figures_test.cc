#include "server/status/worker_figures.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
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
  heartbeat.set_compute_share(0.25);
  heartbeat.set_communication_share(0.75);
  heartbeat.set_communication_hidden(1);
  heartbeat.set_overlap(0.125);
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

TEST(WorkerFiguresTest, RefusesByFieldWhatIsNoFigure) {
  const auto refusal = [](const std::function<void(v1::HeartbeatRequest&)>& spoil) {
    v1::HeartbeatRequest heartbeat;
    heartbeat.set_examples(8);
    spoil(heartbeat);
    return std::string(FiguresOf(heartbeat, 2).status().message());
  };
  using Heartbeat = v1::HeartbeatRequest;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();

  EXPECT_EQ(refusal([](Heartbeat& heartbeat) { heartbeat.set_compute_share(-0.97); }),
            "compute_share is a share of the time, and not -0.97");
  EXPECT_EQ(refusal([](Heartbeat& heartbeat) { heartbeat.set_communication_share(kNan); }),
            "communication_share is a share of the time, and not nan");
  EXPECT_EQ(refusal([](Heartbeat& heartbeat) { heartbeat.set_communication_hidden(2); }),
            "communication_hidden is a share of communication, and not 2");
  EXPECT_EQ(refusal([](Heartbeat& heartbeat) { heartbeat.set_overlap(kInfinity); }),
            "overlap is a share of the time, and not inf");
  EXPECT_EQ(refusal([](Heartbeat& heartbeat) { heartbeat.set_examples_per_second(-1); }),
            "examples_per_second is -1");
  EXPECT_EQ(refusal([](Heartbeat& heartbeat) { heartbeat.set_recent_examples(9); }),
            "recent_examples is 9, and the worker has computed 8 examples");
  EXPECT_EQ(refusal([](Heartbeat& heartbeat) { heartbeat.mutable_nonfinite()->set_in_a_row(1); }),
            "nonfinite.in_a_row is 1 of 0");
  EXPECT_EQ(refusal([](Heartbeat& heartbeat) {
              *heartbeat.add_recent_steps() = Step(7, 1);
              heartbeat.mutable_recent_steps(0)->mutable_lanes(0)->set_pull_end(kNan);
            }),
            "recent_steps has a time that is no number, in step 7");
  EXPECT_EQ(refusal([](Heartbeat& heartbeat) { heartbeat.set_train_loss(kNan); }), "")
      << "training may diverge";
}

}  // namespace
}  // namespace slipstream
