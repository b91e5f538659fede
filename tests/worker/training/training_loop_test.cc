#include "worker/training/training_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "common/base/philox.h"
#include "common/model/net_shapes.h"
#include "common/process/steady_time.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/fake_device.h"
#include "tests/support/fake_shard.h"
#include "worker/compute/cpu/cpu_device.h"
#include "worker/model/initial_values.h"
#include "worker/training/heartbeat.h"
#include "worker/training/local_steps.h"
#include "worker/training/plan_links.h"

namespace slipstream {
namespace {

using Fault = FakeShard::Fault;

constexpr uint32_t kBatchSize = 8;
constexpr uint32_t kClasses = 3;
constexpr uint64_t kSeed = 4;

const ModelSpec kModel = {
    .preset = "",
    .input = {8, 1, 1},
    .layers = {DenseLayer{40}, ReluLayer{}, DenseLayer{30}, ReluLayer{}, DenseLayer{kClasses}}};

Dataset RandomData() {
  RandomStream random(1, 0);
  Dataset data;
  data.shape = {8, 1, 1};
  data.outputs = kClasses;
  for (size_t i = 0; i < 4 * kBatchSize; ++i) {
    data.labels.push_back(random.Below(kClasses));
    for (int j = 0; j < 8; ++j) data.examples.push_back(static_cast<float>(random.Unit()) - 0.5f);
  }
  return data;
}

struct Case {
  std::string name;
  uint32_t depth = 1;
  bool has_own_memory = false;  // Whether the device has.
};

/// One worker and two shards, with which it exchanges several chunks each.
class TrainingLoopTest : public testing::TestWithParam<Case> {
 protected:
  TrainingLoopTest()
      : shapes_(std::get<NetShapes>(InferShapes(kModel))),
        map_(ShardMap::Cut(shapes_.layout, 2).value()),
        shards_{std::make_unique<FakeShard>(map_.range(ShardId{0}).size(), map_.fingerprint()),
                std::make_unique<FakeShard>(map_.range(ShardId{1}).size(), map_.fingerprint())},
        cpu_(NewCpuDevice()),
        fake_(NewFakeDevice(*cpu_)),
        coordinator_client_(coordinator_.address(), {}, [](absl::Duration) { return true; }),
        heartbeat_(coordinator_client_, {}, absl::Hours(1), figures_, interruption_),
        units_(coordinator_client_, {}, figures_, interruption_) {}

  std::unique_ptr<Plan> NewPlan(Device& device) {
    return *device.Prepare(kModel, {.batch_size_max = kBatchSize, .seed = kSeed});
  }

  void MakeClient() {
    for (uint32_t slot = 0; slot < GetParam().depth; ++slot) {
      plans_.push_back(NewPlan(GetParam().has_own_memory ? *fake_ : *cpu_));
      links_.push_back(std::make_unique<PlanWeights>(*plans_.back()));
    }
    ParameterClient::Options options;
    options.identity = {.run = 5, .worker = WorkerId{1}, .incarnation = Incarnation{2}};
    options.servers = {shards_[0]->address(), shards_[1]->address()};
    options.map = map_;
    options.quantum = run_.worker.quantum();
    const AlgorithmRow& algorithm = RowOf(run_.worker.algorithm);
    options.pushes = algorithm.pushes;
    options.has_local_weights = algorithm.has_local_weights;
    options.keeps_weights = algorithm.keeps_weights;
    options.shards.chunk_bytes = 256;
    options.shards.retry = {.first_wait = absl::Milliseconds(1), .wait_max = absl::Milliseconds(2)};
    std::vector<ParameterClient::Slot> slots;
    for (size_t i = 0; i < plans_.size(); ++i) {
      slots.push_back({plans_[i]->weights_host(), plans_[i]->gradients_host(), links_[i].get()});
    }
    local_steps_ = LocalSteps::Make(run_, shapes_.layout, data_.count(), *plans_.front());
    if (algorithm.keeps_weights) {
      slots.front().weights = local_steps_->landing();
      slots.front().listener = nullptr;
    }
    client_ = std::make_unique<ParameterClient>(
        options, slots, [](absl::Duration) { return true; }, interruption_.cancel_switch());
    std::vector<float> initial(shapes_.layout.parameters());
    FillInitialValues(shapes_.layout, kSeed, initial);
    ASSERT_TRUE(client_->Initialize(1, initial).ok());
  }

  /// Trains on this many batches.
  absl::Status Run(uint64_t batches) {
    MakeClient();
    client_->OnUnit({.id = 1, .first = 0, .batches = batches});
    client_->OnNoMoreUnits();
    TrainingLoop loop({.batch_size = kBatchSize,
                       .local_steps = local_steps_.get(),
                       .seed = kSeed,
                       .slowdown = slowdown_},
                      data_, plans_, *client_, units_, heartbeat_, figures_, interruption_);
    return loop.Run();
  }

  std::vector<float> WeightsAt(uint64_t first_version, uint64_t second_version) const {
    std::vector<float> weights = shards_[0]->weights_of(first_version);
    const std::vector<float> rest = shards_[1]->weights_of(second_version);
    weights.insert(weights.end(), rest.begin(), rest.end());
    return weights;
  }

  /// Returns the gradient of a batch at these weights.
  std::vector<float> GradientOf(const std::vector<float>& weights, uint64_t batch) {
    const std::unique_ptr<Plan> plan = NewPlan(*cpu_);
    std::copy(weights.begin(), weights.end(), plan->weights_host().begin());
    BatchOrder order(data_.count(), kBatchSize, kSeed);
    std::vector<float> examples;
    std::vector<uint32_t> labels;
    for (const uint32_t i : order.Examples(batch)) {
      examples.insert(examples.end(), data_.example(i).begin(), data_.example(i).end());
      labels.push_back(data_.labels[i]);
    }
    EXPECT_TRUE(plan->StartStep({examples, labels, batch, {}}, nullptr).ok());
    EXPECT_TRUE(plan->FinishStep().ok());
    return {plan->gradients_host().begin(), plan->gradients_host().end()};
  }

  /// Returns the sum of the local steps on these batches, without those that are not finite.
  std::vector<float> DeltaOf(const std::vector<float>& weights, uint64_t first, uint64_t count) {
    std::vector<float> local = weights;
    for (uint64_t batch = first; batch < first + count; ++batch) {
      const std::vector<float> gradient = GradientOf(local, batch);
      if (!std::isfinite(gradient.front())) continue;
      const auto rate = static_cast<float>(run_.optimizer.learning_rate);
      for (size_t i = 0; i < local.size(); ++i) local[i] -= rate * gradient[i];
    }
    for (size_t i = 0; i < local.size(); ++i) local[i] = weights[i] - local[i];
    return local;
  }

  void ExpectEveryDeltaIsThatOfItsVersions(uint64_t batches) {
    const std::vector<FakeShard::Push> first = shards_[0]->taken();
    const std::vector<FakeShard::Push> second = shards_[1]->taken();
    const uint64_t quantum = run_.worker.quantum();
    ASSERT_EQ(first.size(), (batches + quantum - 1) / quantum);
    ASSERT_EQ(second.size(), first.size());
    for (uint64_t i = 0; i < first.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "push " << i);
      const uint64_t count = std::min(quantum, batches - i * quantum);
      ASSERT_EQ(first[i].header.batches(0).first(), i * quantum);
      ASSERT_EQ(first[i].header.batches(0).count(), count);
      ASSERT_EQ(first[i].header.kind(), v1::DELTA);
      std::vector<float> pushed = first[i].values;
      pushed.insert(pushed.end(), second[i].values.begin(), second[i].values.end());
      const std::vector<float> wanted =
          DeltaOf(WeightsAt(first[i].header.base_version(), second[i].header.base_version()),
                  i * quantum, count);
      for (size_t j = 0; j < pushed.size(); ++j) ASSERT_NEAR(pushed[j], wanted[j], 1e-6) << j;
    }
  }

  void ExpectEveryGradientIsThatOfItsVersions(uint64_t batches) {
    const std::vector<FakeShard::Push> first = shards_[0]->taken();
    const std::vector<FakeShard::Push> second = shards_[1]->taken();
    ASSERT_EQ(first.size(), batches);
    ASSERT_EQ(second.size(), batches);
    for (uint64_t i = 0; i < batches; ++i) {
      SCOPED_TRACE(testing::Message() << "push " << i);
      ASSERT_EQ(first[i].header.batches(0).first(), i);
      ASSERT_EQ(second[i].header.batches(0).first(), i);
      std::vector<float> pushed = first[i].values;
      pushed.insert(pushed.end(), second[i].values.begin(), second[i].values.end());
      EXPECT_EQ(pushed,
                GradientOf(
                    WeightsAt(first[i].header.base_version(), second[i].header.base_version()), i));
    }
  }

  const NetShapes shapes_;
  const ShardMap map_;
  std::unique_ptr<FakeShard> shards_[2];
  Dataset data_ = RandomData();
  RunSpec run_;
  WorkerSlowdown slowdown_;
  const std::unique_ptr<Device> cpu_;
  const std::unique_ptr<Device> fake_;
  FakeCoordinator coordinator_;
  CoordinatorClient coordinator_client_;
  StepFigures figures_;
  Interruption interruption_;
  Heartbeat heartbeat_;
  UnitFetcher units_;
  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<std::unique_ptr<PlanWeights>> links_;
  std::unique_ptr<LocalSteps> local_steps_;
  std::unique_ptr<ParameterClient> client_;
};

TEST_P(TrainingLoopTest, EveryGradientIsThatOfTheVersionsItIsPushedAs) {
  ASSERT_TRUE(Run(20).ok());

  ExpectEveryGradientIsThatOfItsVersions(20);
  EXPECT_EQ(figures_.Read(absl::Now()).steps, 20u);
  EXPECT_EQ(figures_.Read(absl::Now()).recent.back().step.number, 20u);
}

TEST_P(TrainingLoopTest, NoGradientComesFromTwoVersionsOfAShardWhateverBreaks) {
  constexpr Fault kFaults[] = {Fault::kNone,
                               Fault::kBreakBeforeTaking,
                               Fault::kBreakAfterTaking,
                               Fault::kBreakWithinWeights,
                               Fault::kMoveOnWithinWeights,
                               Fault::kMoveOnWithinWeights,
                               Fault::kRetryLater};
  RandomStream random(7, 0);
  for (const auto& shard : shards_) {
    for (int i = 0; i < 40; ++i) shard->AddFault(kFaults[random.Below(std::size(kFaults))]);
  }

  ASSERT_TRUE(Run(30).ok());

  ExpectEveryGradientIsThatOfItsVersions(30);
}

TEST_P(TrainingLoopTest, AStepThatIsNotFiniteHasNoEffectAlthoughItsPushHasBegun) {
  // One of the four mini-batches of each epoch has a gradient that is not finite.
  data_.examples[0] = std::numeric_limits<float>::infinity();

  ASSERT_TRUE(Run(12).ok());

  for (const auto& shard : shards_) EXPECT_EQ(shard->taken().size(), 9u);
  EXPECT_EQ(figures_.Read(absl::Now()).nonfinite.total, 3u);
}

TEST_P(TrainingLoopTest, ASlowedWorkerPushesTheSameGradientsLater) {
  slowdown_.delay = absl::Milliseconds(5);
  const absl::Time begin = SteadyNow();

  ASSERT_TRUE(Run(8).ok());

  EXPECT_GE(SteadyNow() - begin, 8 * slowdown_.delay);
  ExpectEveryGradientIsThatOfItsVersions(8);
}

TEST_P(TrainingLoopTest, AStopEndsTheWaitOfASlowedWorker) {
  slowdown_.delay = absl::Hours(1);
  std::thread stopper([this] {
    while (shards_[1]->values_received() == 0) std::this_thread::yield();
    interruption_.Stop();
  });

  const absl::Status status = Run(8);
  stopper.join();

  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  for (const auto& shard : shards_) EXPECT_EQ(shard->taken().size(), 0u);
}

/// Tests of local steps, which use one slot.
class LocalStepsTest : public TrainingLoopTest {
 protected:
  LocalStepsTest() {
    run_.worker.algorithm = AlgorithmKind::kLocalSgd;
    run_.worker.parameters["steps"] = 3;
    run_.training.batch_size = kBatchSize;
  }
};

TEST_P(LocalStepsTest, EveryDeltaIsThatOfItsStepsFromTheVersionsItIsPushedAs) {
  ASSERT_TRUE(Run(20).ok());

  ExpectEveryDeltaIsThatOfItsVersions(20);
  EXPECT_EQ(figures_.Read(absl::Now()).steps, 20u);
  EXPECT_EQ(figures_.Read(absl::Now()).progress.back().batches_done, 20u);
}

TEST_P(LocalStepsTest, NoDeltaComesFromTwoVersionsOfAShardWhateverBreaks) {
  constexpr Fault kFaults[] = {Fault::kNone,
                               Fault::kBreakBeforeTaking,
                               Fault::kBreakAfterTaking,
                               Fault::kBreakWithinWeights,
                               Fault::kMoveOnWithinWeights,
                               Fault::kRetryLater};
  RandomStream random(8, 0);
  for (const auto& shard : shards_) {
    for (int i = 0; i < 20; ++i) shard->AddFault(kFaults[random.Below(std::size(kFaults))]);
  }

  ASSERT_TRUE(Run(30).ok());

  ExpectEveryDeltaIsThatOfItsVersions(30);
}

TEST_P(LocalStepsTest, AStepThatIsNotFiniteIsLeftOutAndTheOthersCount) {
  data_.examples[0] = std::numeric_limits<float>::infinity();  // Spoils one of four mini-batches.

  ASSERT_TRUE(Run(12).ok());

  ExpectEveryDeltaIsThatOfItsVersions(12);
  EXPECT_EQ(figures_.Read(absl::Now()).nonfinite.total, 3u);
  uint64_t examples = 0;
  for (const FakeShard::Push& push : shards_[0]->taken()) examples += push.header.examples();
  EXPECT_EQ(examples, 9 * kBatchSize);
}

TEST_P(LocalStepsTest, ASlowedWorkerIsSlowedAtEveryStep) {
  slowdown_.delay = absl::Milliseconds(5);
  const absl::Time begin = SteadyNow();

  ASSERT_TRUE(Run(8).ok());

  EXPECT_GE(SteadyNow() - begin, 8 * slowdown_.delay);
  ExpectEveryDeltaIsThatOfItsVersions(8);
}

TEST_P(LocalStepsTest, APushWithoutAnyFiniteStepIsLeftOut) {
  run_.worker.parameters["steps"] = 1;
  data_.examples[0] = std::numeric_limits<float>::infinity();

  ASSERT_TRUE(Run(12).ok());

  for (const auto& shard : shards_) EXPECT_EQ(shard->taken().size(), 9u);
  EXPECT_EQ(figures_.Read(absl::Now()).progress.back().batches_done, 12u);
}

INSTANTIATE_TEST_SUITE_P(Plans, LocalStepsTest,
                         testing::Values(Case{"OfTheProcessor", 1, false},
                                         Case{"OfADeviceWithItsOwnMemory", 1, true}),
                         [](const auto& tested) { return tested.param.name; });

/// Tests of a worker that keeps its weights.
class KeptWeightsTest : public TrainingLoopTest {
 protected:
  KeptWeightsTest() {
    run_.worker.algorithm = AlgorithmKind::kEasgd;
    run_.worker.parameters["push_every"] = 3;
    run_.cluster.workers = 4;
    run_.training.batch_size = kBatchSize;
  }

  /// Takes the worker's steps again, and compares the force of each with what was pushed.
  /// `is_first_refused`: the first shard has not taken the first push.
  void ExpectEveryPushIsTheForceOnKeptWeights(uint64_t batches, bool is_first_refused = false) {
    std::vector<FakeShard::Push> first = shards_[0]->taken();
    const std::vector<FakeShard::Push> second = shards_[1]->taken();
    if (is_first_refused) first.insert(first.begin(), FakeShard::Push{});
    const uint64_t quantum = run_.worker.quantum();
    ASSERT_EQ(second.size(), (batches + quantum - 1) / quantum);
    ASSERT_EQ(first.size(), second.size());
    std::vector<float> x = WeightsAt(0, 0);
    const auto rate = static_cast<float>(run_.optimizer.learning_rate);
    for (uint64_t push = 0; push < second.size(); ++push) {
      SCOPED_TRACE(testing::Message() << "push " << push);
      const uint64_t end = std::min(batches, (push + 1) * quantum);
      std::vector<float> force(x.size());
      for (uint64_t batch = push * quantum; batch < end; ++batch) {
        const std::vector<float> gradient = GradientOf(x, batch);
        if (batch + 1 == end) {
          const std::vector<float> center =
              WeightsAt(first[push].header.base_version(), second[push].header.base_version());
          for (size_t i = 0; i < x.size(); ++i) force[i] = 0.9f / 4 * (x[i] - center[i]);
        }
        for (size_t i = 0; i < x.size(); ++i) x[i] -= force[i] + rate * gradient[i];
      }
      std::vector<float> pushed = first[push].values;
      if (pushed.empty()) {
        pushed.resize(map_.range(ShardId{0}).size());
        for (size_t i = 0; i < pushed.size(); ++i) {
          x[i] += force[i];
          pushed[i] = -force[i];
        }
      }
      pushed.insert(pushed.end(), second[push].values.begin(), second[push].values.end());
      for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(pushed[i], -force[i], 1e-6) << i;
    }
  }
};

TEST_P(KeptWeightsTest, EveryPushIsTheForceOnTheWeightsOfAllEarlierSteps) {
  ASSERT_TRUE(Run(20).ok());

  ExpectEveryPushIsTheForceOnKeptWeights(20);
  EXPECT_EQ(figures_.Read(absl::Now()).progress.back().batches_done, 20u);
}

TEST_P(KeptWeightsTest, WhatBreaksOnTheWayChangesNoStep) {
  constexpr Fault kFaults[] = {Fault::kNone, Fault::kBreakBeforeTaking, Fault::kBreakAfterTaking,
                               Fault::kRetryLater};
  RandomStream random(9, 0);
  for (const auto& shard : shards_) {
    for (int i = 0; i < 20; ++i) shard->AddFault(kFaults[random.Below(std::size(kFaults))]);
  }

  ASSERT_TRUE(Run(30).ok());

  ExpectEveryPushIsTheForceOnKeptWeights(30);
}

TEST_P(KeptWeightsTest, WhatAShardRefusesIsUndoneThereAlone) {
  shards_[0]->RefuseNext(v1::TOO_STALE);

  ASSERT_TRUE(Run(20).ok());

  ExpectEveryPushIsTheForceOnKeptWeights(20, true);
}

TEST_P(KeptWeightsTest, WeightsThatAreNotFiniteAreReplacedByThoseOfTheServers) {
  run_.worker.parameters["push_every"] = 1;
  run_.optimizer.kind = RuleKind::kMomentum;
  run_.optimizer.learning_rate = 3e38;  // The first step leads out of all bounds.

  ASSERT_TRUE(Run(12).ok());

  EXPECT_GT(figures_.Read(absl::Now()).nonfinite.total, 0u);
  for (const auto& shard : shards_) {
    for (const float weight : shard->weights()) ASSERT_TRUE(std::isfinite(weight));
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, KeptWeightsTest,
                         testing::Values(Case{"OfTheProcessor", 1, false},
                                         Case{"OfADeviceWithItsOwnMemory", 1, true}),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(TrainingLoopTest, AStopEndsAStepThatWaitsForWeights) {
  shards_[1]->AddFault(Fault::kPauseWithinWeights);
  std::thread stopper([this] {
    while (shards_[1]->received() == 0) std::this_thread::yield();
    interruption_.Stop();
  });

  const absl::Status status = Run(20);
  stopper.join();

  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
}

TEST_P(TrainingLoopTest, ARefusalEndsTrainingByItsName) {
  shards_[0]->RefuseNext(v1::FENCED);

  const absl::Status status = Run(20);

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

INSTANTIATE_TEST_SUITE_P(Plans, TrainingLoopTest,
                         testing::Values(Case{"OneOfTheProcessor", 1, false},
                                         Case{"OneWithMemoryOfItsOwn", 1, true},
                                         Case{"TwoOfTheProcessor", 2, false},
                                         Case{"TwoWithMemoryOfTheirOwn", 2, true}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace slipstream
