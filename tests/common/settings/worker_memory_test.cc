#include "common/settings/worker_memory.h"

#include <gtest/gtest.h>

#include <variant>

#include "common/model/presets.h"

namespace slipstream {
namespace {

constexpr uint64_t kFloat = sizeof(float);

class WorkerMemoryTest : public testing::Test {
 protected:
  uint64_t Training() const { return WorkerMemoryNeeded(net_, run_).training; }

  uint64_t OfExample() const {
    uint64_t values = 0;
    for (const ExampleShape& shape : net_.shapes) values += shape.elements();
    return values;
  }

  const NetShapes net_ = std::get<NetShapes>(InferShapes(*FindPreset("mlp")));
  const uint64_t model_ = net_.layout.parameters() * kFloat;
  RunSpec run_;
};

TEST_F(WorkerMemoryTest, CountsWeightsGradientsAndABatchOfEachGradientUnderWay) {
  run_.training.batch_size = 10;
  const uint64_t of_slot = 2 * model_ + 10 * OfExample() * kFloat;
  EXPECT_EQ(Training(), of_slot);

  run_.training.pipeline_depth = 3;

  EXPECT_EQ(Training(), 3 * of_slot);
}

TEST_F(WorkerMemoryTest, CountsTheWeightsAndTheBatchOfAMeasurementBesideTraining) {
  const WorkerMemory memory = WorkerMemoryNeeded(net_, run_);

  EXPECT_EQ(memory.evaluation, model_ + kTestBatchSize * OfExample() * kFloat);
  EXPECT_EQ(memory.bytes(), memory.training + memory.evaluation);
}

TEST_F(WorkerMemoryTest, CountsWhatAnAlgorithmWithLocalWeightsKeeps) {
  run_.optimizer.kind = RuleKind::kSgd;
  const uint64_t plain = Training();

  run_.worker.algorithm = AlgorithmKind::kLocalSgd;
  EXPECT_EQ(Training(), plain + model_) << "the anchor";
  run_.optimizer.kind = RuleKind::kAdamW;
  EXPECT_EQ(Training(), plain + 3 * model_) << "and the state of the rule";
}

TEST_F(WorkerMemoryTest, OnAGpuOnlyWeightsAndGradientsLieInMainMemory) {
  const WorkerMemory memory = WorkerMemoryNeeded(net_, run_, false);

  EXPECT_EQ(memory.training, 2 * model_);
  EXPECT_EQ(memory.evaluation, model_);
}

}  // namespace
}  // namespace slipstream
