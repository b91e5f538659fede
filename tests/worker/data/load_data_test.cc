#include "worker/data/load_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/example_values.h"
#include "tests/worker/data/temp_directory.h"

namespace slipstream {
namespace {

/// Returns a model for grey images of 28 × 28.
ModelSpec ModelWith(ModelSpec::Loss loss) {
  return {.preset = "", .input = {1, 28, 28}, .layers = {}, .loss = loss};
}

DataSplits Load(const DataSpec& spec, uint64_t seed = 1) {
  absl::StatusOr<DataSplits> splits =
      LoadData(spec, ModelWith(ModelSpec::Loss::kCrossEntropy), seed);
  EXPECT_TRUE(splits.ok()) << splits.status();
  return splits.ok() ? *std::move(splits) : DataSplits{};
}

DataSpec Generated(uint32_t train_examples, uint32_t test_examples) {
  DataSpec spec;
  spec.train_examples = train_examples;
  spec.test_examples = test_examples;
  return spec;
}

DataSpec Files(DataSpec::Format format, const std::string& path) {
  DataSpec spec;
  spec.format = format;
  spec.path = path;
  return spec;
}

absl::Status StatusOf(const DataSpec& spec) {
  return LoadData(spec, ModelWith(ModelSpec::Loss::kCrossEntropy), 1).status();
}

double Mean(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Deviation(const std::vector<float>& values) {
  const double mean = Mean(values);
  double squares = 0;
  for (const float value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

/// Returns the directory of a published data set, or "" if it is not below SLIPSTREAM_SHARED_DATA.
std::string PublishedSet(const std::string& directory, const std::string& first_file) {
  const char* shared = std::getenv("SLIPSTREAM_SHARED_DATA");
  if (shared == nullptr) return "";
  const std::string path = std::string(shared) + "/" + directory;
  return std::filesystem::exists(path + "/" + first_file) ? path : "";
}

TEST(LoadDataTest, GeneratesTheBuiltInSetNormalised) {
  const DataSplits splits = Load(Generated(3000, 500));

  EXPECT_EQ(splits.train.count(), 3000u);
  EXPECT_EQ(splits.test.count(), 500u);
  EXPECT_EQ(splits.train.outputs, 10u);
  EXPECT_EQ(splits.train.examples.size(), 3000u * 784);
  EXPECT_NEAR(Mean(splits.train.examples.All()), 0, 0.05);
  EXPECT_NEAR(Deviation(splits.train.examples.All()), 1, 0.05);
}

TEST(LoadDataTest, PixelsStayAsTheyAreOrLoseTheirMeanAlone) {
  DataSpec spec = Generated(100, 100);
  const std::vector<float> standardised = Load(spec).train.examples.All();
  spec.pixels = DataSpec::Pixels::kRaw;
  const std::vector<float> raw = Load(spec).train.examples.All();
  spec.pixels = DataSpec::Pixels::kMeanSubtracted;
  const std::vector<float> centred = Load(spec).train.examples.All();

  for (size_t i = 0; i < raw.size(); ++i) {
    ASSERT_EQ(raw[i], std::round(raw[i]));
    ASSERT_GE(raw[i], 0);
    ASSERT_LE(raw[i], 255);
    ASSERT_FLOAT_EQ(centred[i], raw[i] - 255 * 0.2054f);
    ASSERT_NEAR(standardised[i], centred[i] / 255 / 0.2084f, 1e-5);
  }
}

TEST(LoadDataTest, GeneratesTheBuiltInSetInTheShapeOfTheModel) {
  ModelSpec model = ModelWith(ModelSpec::Loss::kCrossEntropy);
  model.input = {3, 40, 64};

  const absl::StatusOr<DataSplits> splits = LoadData(Generated(1000, 100), model, 1);

  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train.shape, (ExampleShape{3, 40, 64}));
  EXPECT_EQ(splits->train.examples.size(), 1000u * 3 * 40 * 64);
  EXPECT_NEAR(Mean(splits->train.examples.All()), 0, 0.1);
  EXPECT_NEAR(Deviation(splits->train.examples.All()), 1, 0.1);
}

TEST(LoadDataTest, GivesTargetsOfOneForTheClassWhereTheLossWantsTargets) {
  const Dataset labelled = Load(Generated(200, 100)).train;

  const Dataset targets = LoadData(Generated(200, 100), ModelWith(ModelSpec::Loss::kMse), 1)->train;

  EXPECT_FALSE(targets.is_labelled());
  ASSERT_EQ(targets.count(), 200u);
  for (size_t i = 0; i < targets.count(); ++i) {
    for (uint32_t j = 0; j < 10; ++j) {
      EXPECT_EQ(targets.target(i)[j], j == labelled.labels[i] ? 1.0f : 0.0f);
    }
  }
  EXPECT_NE(targets.Fingerprint(), labelled.Fingerprint());
}

TEST(LoadDataTest, MakesNoSetThatMemoryCannotHold) {
  const absl::Status status = StatusOf(Generated(4'000'000'000, 100));

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::HasSubstr("3136000078400 bytes are needed"),
                             testing::HasSubstr("are free")));
}

TEST(LoadDataTest, GivesUpTheBuiltInSetWhenTold) {
  int told = 0;
  const auto gives_up = [&told](const std::string&, double) { return ++told < 3; };

  EXPECT_EQ(
      LoadData(Generated(100'000, 100), ModelWith(ModelSpec::Loss::kCrossEntropy), 1, gives_up)
          .status()
          .code(),
      absl::StatusCode::kCancelled);
  EXPECT_EQ(told, 3);
}

TEST(LoadDataTest, GivesUpOnTheLastStretchToo) {
  int looks = 0;
  const auto count = [&looks](const std::string&, double) { return ++looks > 0; };
  const auto load = [](const ReadProgress& progress) {
    return LoadData(Generated(100, 100), ModelWith(ModelSpec::Loss::kCrossEntropy), 1, progress)
        .status();
  };
  ASSERT_TRUE(load(count).ok());
  const int all = looks;
  looks = 0;

  EXPECT_EQ(load([&](const std::string&, double) { return ++looks < all; }).code(),
            absl::StatusCode::kCancelled);
}

TEST(LoadDataTest, SaysWhichFileIsMissing) {
  const std::pair<DataSpec::Format, std::string> cases[] = {
      {DataSpec::Format::kIdx,
       "train-images-idx3-ubyte: no such file, neither plain nor as .gz, nor as "
       "train-images.idx3-ubyte"},
      {DataSpec::Format::kCifar10, "data_batch_1.bin: cannot be opened: No such file or directory"},
      {DataSpec::Format::kNpy, "X_train.npy: cannot be opened: No such file or directory"},
      {DataSpec::Format::kCsv, "train.csv: cannot be opened: No such file or directory"}};
  for (const auto& [format, what] : cases) {
    const absl::Status missing = StatusOf(Files(format, "/none"));

    EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(std::string(missing.message()),
              "/none/" + what +
                  "; data.path is /none. Name another directory with --set "
                  "data.path=DIR, or for one worker with ps_worker --data-path DIR");
  }
}

TEST(LoadDataTest, ReadsFashionMnistAsPublished) {
  const std::string path = PublishedSet("fashion-mnist", "train-images-idx3-ubyte.gz");
  if (path.empty()) GTEST_SKIP() << "no fashion-mnist below $SLIPSTREAM_SHARED_DATA";

  const DataSplits splits = Load(Files(DataSpec::Format::kIdx, path));

  const ExampleShape shape = {.channels = 1, .height = 28, .width = 28};
  EXPECT_EQ(splits.train.shape, shape);
  EXPECT_EQ(splits.train.count(), 60000u);
  EXPECT_EQ(splits.test.count(), 10000u);
  for (uint32_t label = 0; label < 10; ++label) {
    EXPECT_EQ(std::count(splits.train.labels.begin(), splits.train.labels.end(), label), 6000);
    EXPECT_EQ(std::count(splits.test.labels.begin(), splits.test.labels.end(), label), 1000);
  }
  EXPECT_NEAR(Mean(splits.train.examples.All()), 0, 0.001);
  EXPECT_NEAR(Deviation(splits.train.examples.All()), 1, 0.001);
}

TEST(LoadDataTest, ReadsCifar10AsPublished) {
  const std::string path = PublishedSet("cifar10", "test_batch.bin");
  if (path.empty()) GTEST_SKIP() << "no unpacked cifar10 below $SLIPSTREAM_SHARED_DATA";

  const DataSplits splits = Load(Files(DataSpec::Format::kCifar10, path));

  const ExampleShape shape = {.channels = 3, .height = 32, .width = 32};
  EXPECT_EQ(splits.train.shape, shape);
  EXPECT_EQ(splits.train.count(), 50000u);
  EXPECT_EQ(splits.test.count(), 10000u);
  EXPECT_NEAR(Mean(splits.train.examples.All()), 0, 0.02);
  EXPECT_NEAR(Deviation(splits.train.examples.All()), 1, 0.02);
}

TEST(FingerprintTest, IsGivenUpWhenTold) {
  const Dataset data = Load(Generated(100, 100)).train;

  EXPECT_EQ(data.Fingerprint([] { return true; }), data.Fingerprint());
  EXPECT_EQ(data.Fingerprint([] { return false; }), std::nullopt);
}

TEST(FingerprintTest, IsEqualForEqualContentsOnly) {
  const DataSpec spec = Generated(100, 100);
  const Dataset original = Load(spec).train;
  Dataset other_value = original;
  SetValues(other_value, 700, 1, 7);
  Dataset other_label = original;
  other_label.labels[99] = 3;
  Dataset targets = original;
  targets.labels.clear();
  targets.targets.resize(1000);
  Dataset other_target = targets;
  other_target.targets[999] = 1;
  Dataset other_shape = original;
  std::swap(other_shape.shape.channels, other_shape.shape.height);

  EXPECT_EQ(Load(spec).train.Fingerprint(), original.Fingerprint());
  EXPECT_NE(other_value.Fingerprint(), original.Fingerprint());
  EXPECT_NE(other_label.Fingerprint(), original.Fingerprint());
  EXPECT_NE(targets.Fingerprint(), original.Fingerprint());
  EXPECT_NE(targets.Fingerprint(), other_target.Fingerprint());
  EXPECT_NE(other_shape.Fingerprint(), original.Fingerprint());
  EXPECT_NE(Load(spec, 2).train.Fingerprint(), original.Fingerprint());
  EXPECT_NE(Load(spec).test.Fingerprint(), original.Fingerprint());
}

TEST(LoadDataTest, TheTestSetAloneIsTheSameWithoutTrainingFiles) {
  const DataSpec generated = Generated(200, 100);
  const auto both = LoadData(generated, ModelWith(ModelSpec::Loss::kMse), 1);
  const auto alone = LoadTestData(generated, ModelWith(ModelSpec::Loss::kMse), 1);
  ASSERT_TRUE(both.ok() && alone.ok()) << both.status() << alone.status();
  EXPECT_EQ(alone->Fingerprint(), both->test.Fingerprint());

  const TempDirectory directory;
  directory.Write("test.csv", "1,2,0\n3,4,1\n");
  const auto table = LoadTestData(Files(DataSpec::Format::kCsv, directory.path()),
                                  ModelWith(ModelSpec::Loss::kCrossEntropy), 1);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->count(), 2u);
}

TEST(LoadDataTest, SaysOfAMissingFileWhichDirectoryWasMeantAndHowToNameAnother) {
  const std::string here = std::filesystem::current_path();
  for (const auto format : {DataSpec::Format::kIdx, DataSpec::Format::kCifar10,
                            DataSpec::Format::kNpy, DataSpec::Format::kCsv}) {
    const absl::Status missing = StatusOf(Files(format, "no/where"));

    EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
    const std::string message(missing.message());
    EXPECT_TRUE(message.starts_with("no/where/")) << message;
    EXPECT_TRUE(message.ends_with(
        "; data.path is no/where, which means " + here +
        "/no/where, as paths are relative to where a program is started. Name another directory "
        "with --set data.path=DIR, or for one worker with "
        "ps_worker --data-path DIR"))
        << message;
    EXPECT_EQ(LoadTestData(Files(format, "no/where"), ModelWith(ModelSpec::Loss::kCrossEntropy), 1)
                  .status()
                  .code(),
              absl::StatusCode::kNotFound);
  }
}

}  // namespace
}  // namespace slipstream
