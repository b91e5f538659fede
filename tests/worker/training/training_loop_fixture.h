#ifndef SLIPSTREAM_TESTS_WORKER_TRAINING_TRAINING_LOOP_FIXTURE_H_
#define SLIPSTREAM_TESTS_WORKER_TRAINING_TRAINING_LOOP_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "common/base/philox.h"
#include "common/model/net_shapes.h"
#include "common/process/steady_time.h"
#include "tests/support/example_values.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/fake_device.h"
#include "tests/support/fake_shard.h"
#include "worker/compute/cpu/cpu_device.h"
#include "worker/model/initial_values.h"
#include "worker/training/heartbeat.h"
#include "worker/training/local_steps.h"
#include "worker/training/state_keeper.h"
#include "worker/training/thread_plans.h"
#include "worker/training/training_loop.h"

namespace slipstream {

using Fault = FakeShard::Fault;

/// The faults from which a worker recovers by itself, and the absence of one.
inline constexpr Fault kPassingFaults[] = {Fault::kNone,
                                           Fault::kBreakBeforeTaking,
                                           Fault::kBreakAfterTaking,
                                           Fault::kBreakWithinWeights,
                                           Fault::kMoveOnWithinWeights,
                                           Fault::kRetryLater};

inline constexpr uint32_t kBatchSize = 8;
inline constexpr uint32_t kClasses = 3;
inline constexpr uint64_t kSeed = 4;

inline const ModelSpec kModel = {
    .preset = "",
    .input = {8, 1, 1},
    .layers = {DenseLayer{40}, ReluLayer{}, DenseLayer{30}, ReluLayer{}, DenseLayer{kClasses}}};

inline Dataset RandomData() {
  RandomStream random(1, 0);
  Dataset data;
  data.shape = {8, 1, 1};
  data.outputs = kClasses;
  std::vector<float> values;
  for (size_t i = 0; i < 4 * kBatchSize; ++i) {
    data.labels.push_back(random.Below(kClasses));
    for (int j = 0; j < 8; ++j) values.push_back(static_cast<float>(random.Unit()) - 0.5f);
  }
  data.examples = ExampleValues(std::move(values));
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
        heartbeat_(coordinator_client_, {}, absl::Hours(1), figures_, servers_, interruption_),
        units_(coordinator_client_, {}, {}, 1, figures_, interruption_) {}

  std::unique_ptr<Plan> NewPlan(Device& device) {
    return *device.Prepare(kModel, {.batch_size_max = kBatchSize, .seed = kSeed});
  }

  /// Makes a plan for each slot, or for each thread.
  void MakePlans() {
    Device& device = GetParam().has_own_memory ? *fake_ : *cpu_;
    if (run_.worker.threads > 1) {
      threads_ = *ThreadPlans::Make(run_.worker.threads, shapes_.layout.parameters(),
                                    [&](size_t) { return NewPlan(device); });
      arenas_.push_back(&threads_->model());
    }
    for (uint32_t slot = 0; threads_ == nullptr && slot < GetParam().depth; ++slot) {
      plans_.push_back(NewPlan(device));
      arenas_.push_back(plans_.back().get());
    }
  }

  void MakeClient() {
    MakePlans();
    ParameterClient::Options options;
    options.identity = identity_;
    options.servers = {shards_[0]->address(), shards_[1]->address()};
    options.map = map_;
    options.in_step = run_.consistency.traits().in_step;
    options.quantum = run_.worker.quantum();
    const AlgorithmRow& algorithm = RowOf(run_.worker.algorithm);
    options.pushes = algorithm.pushes;
    options.changes_weights = algorithm.has_local_weights && !run_.worker.lands_apart();
    options.sends_parts_ahead = run_.worker.fragments() > 1;
    options.keeps_weights = algorithm.keeps_weights;
    options.has_free_lanes = run_.worker.has_free_lanes();
    options.pushes_per_fetch = run_.pushes_per_fetch();
    options.shards.chunk_bytes = 256;
    options.shards.retry = {.first_wait = absl::Milliseconds(1), .wait_max = absl::Milliseconds(2)};
    std::vector<ParameterClient::Slot> slots;
    for (ModelArenas* arenas : arenas_) {
      slots.push_back({arenas->weights_host(), arenas->gradients_host(), arenas});
    }
    local_steps_ =
        LocalSteps::Make(run_, shapes_.layout, data_.count(), *arenas_.front(), threads_.get());
    if (run_.worker.lands_apart()) {
      slots.front() = {local_steps_->landing(), local_steps_->outbox(), nullptr};
    }
    client_ = std::make_unique<ParameterClient>(
        options, slots, [](absl::Duration) { return true; }, interruption_.cancel_switch());
    std::vector<float> initial(shapes_.layout.parameters());
    FillInitialValues(shapes_.layout, kSeed, initial);
    ASSERT_TRUE(client_->Initialize(1, initial).ok());
  }

  /// The worker's state is saved whenever the last one is written.
  StateKeeper::Options StateOptions() const {
    return {.directory = run_.worker.save_state.directory,
            .interval = absl::ZeroDuration(),
            .identity = identity_,
            .owner = OwnerOf(run_, identity_, map_)};
  }

  /// Trains on this many batches.
  absl::Status Run(uint64_t batches) {
    MakeClient();
    EXPECT_TRUE(client_->OnNews(WorkUnit{.id = 1, .first = 0, .batches = batches}).ok());
    EXPECT_TRUE(client_->OnNews(NoMoreUnits{}).ok());
    if (saves_state_) {
      state_ = std::make_unique<StateKeeper>(StateOptions(), *client_, local_steps_.get());
    }
    TrainingLoop loop({.batch_size = kBatchSize,
                       .local_steps = local_steps_.get(),
                       .servers = client_.get(),
                       .threads = threads_.get(),
                       .seed = kSeed,
                       .clip = GradientClip(run_.optimizer),
                       .slowdown = slowdown_,
                       .state = state_.get(),
                       .push_codec = run_.wire.push_codec},
                      data_, threads_ != nullptr ? threads_->plans() : plans_, *client_, units_,
                      heartbeat_, figures_, interruption_);
    return loop.Run();
  }

  /// Gives the next 20 pushes to each shard faults out of these, by chance.
  void AddFaults(std::span<const Fault> faults, uint64_t seed) {
    RandomStream random(seed, 0);
    for (const auto& shard : shards_) {
      for (int i = 0; i < 20; ++i) shard->AddFault(faults[random.Below(faults.size())]);
    }
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
      const std::vector<float> example = ExampleOf(data_, i);
      examples.insert(examples.end(), example.begin(), example.end());
      labels.push_back(data_.labels[i]);
    }
    EXPECT_TRUE(plan->StartStep({examples, labels, batch, {}}, nullptr).ok());
    EXPECT_TRUE(plan->FinishStep().ok());
    return {plan->gradients_host().begin(), plan->gradients_host().end()};
  }

  /// Returns the learning rate of each value.
  std::vector<float> Rates() const {
    std::vector<float> rates;
    for (const OptionSpan& span : OptionSpansWithin({0, shapes_.layout.parameters()},
                                                    shapes_.layout, 0, run_.optimizer.per_tensor)) {
      const double rate = run_.optimizer.learning_rate * span.learning_rate_factor;
      rates.insert(rates.end(), span.range.size(), static_cast<float>(rate));
    }
    return rates;
  }

  /// Returns the sum of the local steps on these batches, without those that are not finite.
  std::vector<float> DeltaOf(const std::vector<float>& weights, uint64_t first, uint64_t count) {
    std::vector<float> local = weights;
    for (uint64_t batch = first; batch < first + count; ++batch) {
      const std::vector<float> gradient = GradientOf(local, batch);
      if (!std::isfinite(gradient.front())) continue;
      const std::vector<float> rates = Rates();
      for (size_t i = 0; i < local.size(); ++i) local[i] -= rates[i] * gradient[i];
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

  const Identity identity_ = {.run = 5, .worker = WorkerId{1}, .incarnation = Incarnation{2}};
  bool saves_state_ = false;
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
  ServerAddresses servers_;
  Interruption interruption_;
  Heartbeat heartbeat_;
  UnitFetcher units_;
  std::vector<std::unique_ptr<Plan>> plans_;
  std::unique_ptr<ThreadPlans> threads_;  // Null for one thread.
  std::vector<ModelArenas*> arenas_;      // By slot.
  std::unique_ptr<LocalSteps> local_steps_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<StateKeeper> state_;  // Null unless saves_state_.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_TRAINING_TRAINING_LOOP_FIXTURE_H_
