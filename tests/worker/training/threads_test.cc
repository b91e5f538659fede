#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "common/base/mutex.h"
#include "common/model/net_shapes.h"
#include "tests/worker/compute/random_batch.h"
#include "worker/compute/cpu/cpu_device.h"
#include "worker/model/initial_values.h"
#include "worker/training/batch_dealer.h"
#include "worker/training/compute_threads.h"
#include "worker/training/local_steps.h"
#include "worker/training/shared_model.h"
#include "worker/training/thread_model.h"
#include "worker/training/thread_plans.h"

namespace slipstream {
namespace {

using Arena = LocalModel::Arena;

constexpr size_t kThreads = 4;
constexpr uint32_t kBatchSize = 16;
constexpr uint32_t kInputs = 60;
constexpr uint32_t kClasses = 3;

TEST(ComputeThreadsTest, EachWorksOnceAtEachCallAndAlwaysUnderItsNumber) {
  ComputeThreads threads(kThreads);
  std::vector<std::thread::id> ids(kThreads);
  ASSERT_TRUE(threads
                  .Run([&](size_t thread) {
                    ids[thread] = std::this_thread::get_id();
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  std::vector<std::thread::id> sorted = ids;
  std::ranges::sort(sorted);
  EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end());

  std::vector<int> calls(kThreads);
  for (int call = 1; call <= 100; ++call) {
    ASSERT_TRUE(threads
                    .Run([&](size_t thread) {
                      ++calls[thread];
                      EXPECT_EQ(ids[thread], std::this_thread::get_id());
                      return absl::OkStatus();
                    })
                    .ok());
    ASSERT_EQ(calls, std::vector<int>(kThreads, call)) << "Run has waited for all";
  }
}

TEST(ComputeThreadsTest, AFailureIsReportedAfterAllHaveEndedAndOneByNameFirst) {
  ComputeThreads threads(kThreads);
  std::atomic<size_t> ended = 0;

  const absl::Status status = threads.Run([&](size_t thread) {
    ++ended;
    if (thread == 2) return absl::InternalError("two");
    return thread == 0 ? absl::CancelledError("zero") : absl::OkStatus();
  });

  EXPECT_EQ(ended, kThreads);
  EXPECT_EQ(status.message(), "two") << "CANCELLED counts only if there is no other";
  EXPECT_TRUE(threads.Run([](size_t) { return absl::OkStatus(); }).ok());
}

TEST(ComputeThreadsTest, AnExceptionReachesTheCaller) {
  ComputeThreads threads(kThreads);
  const auto work = [](size_t thread) -> absl::Status {
    if (thread == 3) throw std::runtime_error("three");
    return absl::OkStatus();
  };

  EXPECT_THROW(threads.Run(work).IgnoreError(), std::runtime_error);
  EXPECT_TRUE(threads.Run([](size_t) { return absl::OkStatus(); }).ok());
}

TEST(BatchDealerTest, DealsEachMiniBatchOnceInTheirOrder) {
  BatchDealer dealer({{5, 2}, {9, 1}, {20, 3}});
  std::vector<uint64_t> dealt;
  while (const std::optional<uint64_t> batch = dealer.Take()) dealt.push_back(*batch);

  EXPECT_EQ(dealt, (std::vector<uint64_t>{5, 6, 9, 20, 21, 22}));
  EXPECT_EQ(dealer.Take(), std::nullopt);
}

TEST(BatchDealerTest, DealsNothingAfterAStop) {
  BatchDealer dealer({{5, 2}, {9, 1}});
  ASSERT_EQ(dealer.Take(), 5u);
  dealer.Stop();

  EXPECT_EQ(dealer.Take(), std::nullopt);
}

/// A net of two blocks and a part of a third.
const ModelSpec kModel = {.preset = "",
                          .input = {kInputs, 1, 1},
                          .layers = {DenseLayer{280}, ReluLayer{}, DenseLayer{kClasses}}};

/// A worker whose threads share local steps, as the training loop does it, but without servers.
class ThreadsTest : public testing::Test {
 protected:
  ThreadsTest()
      : layout_(std::get<NetShapes>(InferShapes(kModel)).layout), device_(NewCpuDevice()) {
    run_.model = kModel;
    run_.worker.algorithm = AlgorithmKind::kLocalSgd;
    run_.training.batch_size = kBatchSize;
    run_.optimizer.learning_rate = 0.05;
  }

  std::unique_ptr<Plan> NewPlan() {
    return *device_->Prepare(kModel, {.batch_size_max = kBatchSize, .seed = 1});
  }

  /// Starts from the initial values.
  void Begin(size_t threads) {
    plans_ = *ThreadPlans::Make(threads, layout_.parameters(), [&](size_t) { return NewPlan(); });
    local_steps_ = LocalSteps::Make(run_, layout_, kExamples, plans_->model(), plans_.get());
    plans_->model().ExpectWeights();
    FillInitialValues(layout_, 1, plans_->model().weights_host());
    plans_->model().WeightsArrived({0, layout_.parameters()});
  }

  static RandomBatch BatchOf(uint64_t index) {
    return RandomBatch(kBatchSize, kInputs, kClasses, index);
  }

  /// Takes the steps of one push, and writes its values to the outbox.
  void TakePush(const BatchRanges& batches) {
    local_steps_->Begin();
    ASSERT_TRUE(plans_->model().AwaitWeights());
    BatchDealer dealer(batches);
    const absl::Status status = plans_->threads().Run([&](size_t thread) {
      Plan& plan = *plans_->plans()[thread];
      while (const std::optional<uint64_t> index = dealer.Take()) {
        plans_->CopyWeights(thread);
        const RandomBatch batch = BatchOf(*index);
        absl::Status started = plan.StartStep(batch.batch(), nullptr);
        if (!started.ok()) return started;
        const absl::StatusOr<StepResult> result = plan.FinishStep();
        if (!result.ok()) return result.status();
        Note(*index, plan.gradients_host());
        local_steps_->OnGradient(*index, thread);
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(local_steps_->steps(), CountOf(batches));
    local_steps_->BeforePush({0, layout_.parameters()});
  }

  void Note(uint64_t index, std::span<const float> gradient) {
    MutexLock lock(mutex_);
    computed_.push_back(index);
    sum_.resize(gradient.size());
    for (size_t i = 0; i < gradient.size(); ++i) sum_[i] += gradient[i];
  }

  std::vector<uint64_t> computed() {
    MutexLock lock(mutex_);
    std::vector<uint64_t> sorted = computed_;
    std::ranges::sort(sorted);
    return sorted;
  }

  std::vector<float> weights() {
    const std::span<const float> weights = plans_->model().weights_host();
    return {weights.begin(), weights.end()};
  }

  /// Returns the loss of the shared weights on mini-batches that no step has seen.
  float Loss() {
    const std::unique_ptr<Plan> plan = NewPlan();
    std::ranges::copy(weights(), plan->weights_host().begin());
    float loss = 0;
    for (uint64_t index = 1000; index < 1010; ++index) {
      loss += plan->Evaluate(BatchOf(index).batch())->loss / 10;
    }
    return loss;
  }

  static constexpr uint64_t kExamples = 10'000;

  const TensorLayout layout_;
  const std::unique_ptr<Device> device_;
  RunSpec run_;
  std::unique_ptr<ThreadPlans> plans_;
  std::unique_ptr<LocalSteps> local_steps_;
  Mutex mutex_;
  std::vector<uint64_t> computed_ ABSL_GUARDED_BY(mutex_);
  std::vector<double> sum_ ABSL_GUARDED_BY(mutex_);  // Of the gradients.
};

TEST_F(ThreadsTest, NoStepOfAnyThreadIsLost) {
  constexpr int kSteps = 200;
  Begin(kThreads);
  const std::vector<float> before(layout_.parameters(), 1.0f);
  std::ranges::copy(before, plans_->model().weights_host().begin());
  std::vector<float> anchor(layout_.parameters());

  ASSERT_TRUE(plans_->threads()
                  .Run([&](size_t thread) {
                    const std::vector<float> ones(layout_.parameters(), 1.0f);
                    std::vector<float> gradient = ones;
                    ThreadModel model(run_.optimizer, layout_, plans_->model(), anchor, gradient);
                    for (int step = 0; step < kSteps; ++step) {
                      model.Step(0.25);
                      model.Combine(Arena::kAnchor, 1, Arena::kAnchor, 2, Arena::kGradient);
                      plans_->CopyWeights(thread);
                    }
                    return absl::OkStatus();
                  })
                  .ok());

  // All of these numbers are exact in fp32.
  EXPECT_EQ(weights(), std::vector<float>(before.size(), 1 - 0.25f * kSteps * kThreads));
  EXPECT_EQ(anchor, std::vector<float>(before.size(), 2.0f * kSteps * kThreads));
}

TEST_F(ThreadsTest, EachMiniBatchOfAPushIsComputedOnceAndTheDeltaIsThatOfAllSteps) {
  Begin(kThreads);
  const std::vector<float> before = weights();

  TakePush({{0, 13}, {20, 5}});

  EXPECT_EQ(computed(),
            (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 20, 21, 22, 23, 24}));
  const std::vector<float> after = weights();
  MutexLock lock(mutex_);
  for (size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(local_steps_->outbox()[i], before[i] - after[i]) << i;
    ASSERT_NEAR(before[i] - after[i], 0.05 * sum_[i], 1e-5) << i;
  }
}

TEST_F(ThreadsTest, DownpourPushesTheSumOfTheGradientsOfAllThreads) {
  run_.worker.algorithm = AlgorithmKind::kDownpour;
  run_.worker.parameters["push_every"] = 16;
  Begin(kThreads);

  TakePush({{0, 16}});

  MutexLock lock(mutex_);
  for (size_t i = 0; i < sum_.size(); ++i) {
    ASSERT_NEAR(local_steps_->outbox()[i], sum_[i], 1e-5) << i;
  }
}

TEST_F(ThreadsTest, TheLossFalls) {
  Begin(kThreads);
  const float before = Loss();

  for (uint64_t push = 0; push < 10; ++push) TakePush({{16 * push, 16}});

  EXPECT_LT(Loss(), before / 2) << "from " << before;
}

TEST_F(ThreadsTest, OneThreadTakesTheStepsThatItTakesWithoutSharing) {
  run_.optimizer.weight_decay = 0.01;
  run_.optimizer.per_tensor = {{.match = "*.bias", .learning_rate_factor = 0.5},
                               {.match = "2.*", .learning_rate_factor = 0}};
  Begin(1);
  const std::unique_ptr<Plan> plan = NewPlan();
  const auto alone = LocalSteps::Make(run_, layout_, kExamples, *plan);
  FillInitialValues(layout_, 1, plan->weights_host());

  TakePush({{0, 20}});
  alone->Begin();
  for (uint64_t index = 0; index < 20; ++index) {
    const RandomBatch batch = BatchOf(index);
    ASSERT_TRUE(plan->StartStep(batch.batch(), nullptr).ok());
    ASSERT_TRUE(plan->FinishStep().ok());
    alone->OnGradient(index);
  }
  alone->BeforePush({0, layout_.parameters()});

  EXPECT_TRUE(std::ranges::equal(local_steps_->outbox(), alone->outbox()));
  EXPECT_TRUE(std::ranges::equal(weights(), plan->weights_host()));
}

TEST_F(ThreadsTest, StepsWaitForWeightsAndDoNotBeginIfTheseWillNotCome) {
  Begin(kThreads);
  SharedModel& model = plans_->model();
  model.ExpectWeights();
  std::thread lane([&] { model.WeightsArrived({0, layout_.parameters()}); });
  EXPECT_TRUE(model.AwaitWeights());
  lane.join();

  model.RevokeWeights({0, 1});
  model.WeightsArrived({0, 1});
  EXPECT_FALSE(model.AwaitWeights()) << "some may be of another version";
  EXPECT_TRUE(model.AwaitWeights());

  model.ExpectWeights();
  model.AbandonWeights();
  EXPECT_FALSE(model.AwaitWeights());
}

TEST_F(ThreadsTest, AFailureToMakeAPlanIsReported) {
  const auto made = ThreadPlans::Make(kThreads, layout_.parameters(),
                                      [&](size_t thread) -> absl::StatusOr<std::unique_ptr<Plan>> {
                                        if (thread == 2)
                                          return absl::ResourceExhaustedError("no memory");
                                        return NewPlan();
                                      });

  EXPECT_TRUE(absl::IsResourceExhausted(made.status())) << made.status();
}

}  // namespace
}  // namespace slipstream
