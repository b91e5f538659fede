#include "deploy/psctl/config/data_memory.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/worker/data/gzip.h"
#include "tests/worker/data/npy_array.h"
#include "tests/worker/data/temp_directory.h"

namespace slipstream {
namespace {

/// Ten outputs of 784 inputs.
class DataMemoryTest : public testing::Test {
 protected:
  DataMemoryTest() { run_.data.path = directory_.path(); }

  std::optional<DataMemory> Needed(DataSpec::Format format) {
    run_.data.format = format;
    NetShapes net;
    net.shapes = {{.channels = 784}, {.channels = 10}};
    return DataMemoryNeeded(run_, net);
  }

  const TempDirectory directory_;
  RunSpec run_;
};

TEST_F(DataMemoryTest, GeneratedExamplesAreBytesOfEachWorker) {
  run_.data.train_examples = 900;
  run_.data.test_examples = 100;

  const auto memory = Needed(DataSpec::Format::kSynthetic);

  EXPECT_EQ(memory->shared, 0u);
  EXPECT_EQ(memory->each, 1000u * (784 + 4));
  run_.model.loss = ModelSpec::Loss::kMse;
  EXPECT_EQ(Needed(DataSpec::Format::kSynthetic)->each, 1000u * (784 + 40));
}

TEST_F(DataMemoryTest, PlainFilesAreSharedAndPackedOnesAreNot) {
  EXPECT_FALSE(Needed(DataSpec::Format::kIdx).has_value());
  directory_.Write("train-images-idx3-ubyte", std::vector<uint8_t>(5000));
  directory_.Write("train-labels-idx1-ubyte", std::vector<uint8_t>(100));
  directory_.Write("t10k-images.idx3-ubyte.gz", Gzip(std::vector<uint8_t>(3000)));
  directory_.Write("t10k-labels-idx1-ubyte", std::vector<uint8_t>(50));

  const auto memory = Needed(DataSpec::Format::kIdx);

  EXPECT_EQ(memory->shared, 5000u);
  EXPECT_EQ(memory->each, 3000u + 150 * 4);
}

TEST_F(DataMemoryTest, ArraysAreSharedIfTheyAreMapped) {
  const std::string floats = NpyArray<float>("<f4", "(100, 1)", std::vector<float>(100));
  const std::string labels = NpyArray<uint8_t>("|u1", "(100,)", std::vector<uint8_t>(100));
  for (const char* split : {"train", "test"}) {
    directory_.Write(std::string("X_") + split + ".npy", floats);
    directory_.Write(std::string("y_") + split + ".npy", labels);
  }

  EXPECT_EQ(Needed(DataSpec::Format::kNpy)->shared, 2 * floats.size());

  directory_.Write("X_train.npy", NpyArray<double>("<f8", "(100, 1)", std::vector<double>(100)));
  const auto memory = Needed(DataSpec::Format::kNpy);
  EXPECT_EQ(memory->shared, floats.size());
  EXPECT_GE(memory->each, 400u + 2 * 400);
  EXPECT_LE(memory->each, 400u + 2 * 4 * labels.size() + 128) << "labels have four bytes";
}

TEST_F(DataMemoryTest, TablesTakeWhatTheirValuesDo) {
  std::string table;
  for (int row = 0; row < 300'000; ++row) table += "0,7\n";
  directory_.Write("train.csv", table);
  directory_.Write("test.csv", "0.12345,7\n");

  EXPECT_EQ(Needed(DataSpec::Format::kCsv)->each, 600'000u * 4 + 2 * 4);
}

}  // namespace
}  // namespace slipstream
