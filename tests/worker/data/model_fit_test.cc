#include "worker/data/model_fit.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

namespace slipstream {
namespace {

NetShapes Net(std::vector<uint32_t> input, uint32_t outputs,
              ModelSpec::Loss loss = ModelSpec::Loss::kCrossEntropy) {
  return std::get<NetShapes>(InferShapes({.preset = "",
                                          .input = std::move(input),
                                          .layers = {FlattenLayer{}, DenseLayer{outputs}},
                                          .loss = loss}));
}

DataSplits Labelled(ExampleShape shape, uint32_t classes) {
  Dataset dataset{.shape = shape, .outputs = classes};
  dataset.labels = {0, classes - 1};
  return {dataset, dataset};
}

DataSplits WithTargets(uint32_t values) {
  Dataset dataset{.shape = {4, 1, 1}, .outputs = values};
  dataset.targets.resize(size_t{3} * values);
  return {dataset, dataset};
}

std::string Error(const NetShapes& net, DataSplits data) {
  const absl::Status status = FitToModel(net, data);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(FitToModelTest, TakesWhatFits) {
  DataSplits data = Labelled({1, 28, 28}, 3);

  EXPECT_TRUE(FitToModel(Net({1, 28, 28}, 3), data).ok());
  EXPECT_TRUE(FitToModel(Net({1, 28, 28}, 10), data).ok());
  DataSplits targets = WithTargets(2);
  EXPECT_TRUE(FitToModel(Net({4, 1, 1}, 2, ModelSpec::Loss::kMse), targets).ok());
}

TEST(FitToModelTest, FlatExamplesTakeTheShapeOfTheInput) {
  DataSplits data = Labelled({784, 1, 1}, 10);

  EXPECT_TRUE(FitToModel(Net({1, 28, 28}, 10), data).ok());

  EXPECT_EQ(data.train.shape, (ExampleShape{1, 28, 28}));
  EXPECT_EQ(data.test.shape, (ExampleShape{1, 28, 28}));
}

TEST(FitToModelTest, NamesWhatTheDataHaveAndWhatTheModelHas) {
  EXPECT_EQ(Error(Net({1, 28, 28}, 10), Labelled({3, 32, 32}, 10)),
            "the examples of the data are 3×32×32 (3072 values), and the model's input is 1×28×28 "
            "(784 values); change model.input or the data");
  EXPECT_EQ(Error(Net({784, 1, 1}, 10), Labelled({1, 28, 28}, 10)),
            "the examples of the data are 1×28×28 (784 values), and the model's input is 784×1×1 "
            "(784 values); change model.input or the data");
  EXPECT_EQ(Error(Net({4, 1, 1}, 3), Labelled({4, 1, 1}, 5)),
            "the labels of the data go up to 4, and the model's last layer has outputs for the "
            "classes 0 to 2; give it 5 units");
  EXPECT_EQ(Error(Net({4, 1, 1}, 3, ModelSpec::Loss::kMse), WithTargets(1)),
            "the data have targets of 1 value, and the model's last layer has 3 outputs; give it 1 "
            "units");
}

}  // namespace
}  // namespace slipstream
