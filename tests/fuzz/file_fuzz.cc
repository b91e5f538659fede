#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/model/model_spec.h"
#include "common/model_file/model_file.h"
#include "common/model_file/model_header.h"
#include "common/settings/run_spec.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"
#include "worker/data/cifar10_format.h"
#include "worker/data/dataset.h"
#include "worker/data/file_bytes.h"
#include "worker/data/load_data.h"

namespace slipstream {
namespace {

/// A data set whose training and test files are the same: examples, and labels if the format has
/// separate files for them.
class DataFiles {
 public:
  DataFiles(const std::vector<std::string>& example_names,
            const std::vector<std::string>& label_names) {
    for (const std::string& name : example_names) directory_.Link(name, examples_);
    for (const std::string& name : label_names) directory_.Link(name, labels_);
  }

  void Write(std::string_view examples, std::string_view labels) {
    examples_.Write(examples);
    labels_.Write(labels);
  }

  const std::string& path() const { return directory_.path(); }

 private:
  MemoryFile examples_;
  MemoryFile labels_;
  LinkDirectory directory_;
};

/// Checks the properties of a data set on which computations rely.
void CheckDataset(const Dataset& data) {
  PS_CHECK(data.count() > 0 && data.outputs > 0);
  PS_CHECK(data.examples.size() == data.count() * data.shape.elements());
  PS_CHECK(data.labels.empty() != data.targets.empty());
  PS_CHECK(data.targets.size() % data.outputs == 0);
  for (const uint32_t label : data.labels) PS_CHECK(label < data.outputs);
  const auto is_finite = [](float value) { return std::isfinite(value); };
  PS_CHECK(std::ranges::all_of(data.examples.All(), is_finite));
  PS_CHECK(std::ranges::all_of(data.targets, is_finite));
}

/// Returns whether a message begins with the path of the file that is wrong.
bool BeginsWith(const absl::Status& status, const std::string& path) {
  return std::string(status.message()).starts_with(path);
}

/// Loads the data as training would: for regression, and then, if possible, for classification.
void Load(const DataSpec& spec) {
  for (const ModelSpec::Loss loss : {ModelSpec::Loss::kMse, ModelSpec::Loss::kCrossEntropy}) {
    // Classification refuses settings with several label columns.
    if (loss == ModelSpec::Loss::kCrossEntropy && spec.label_columns.size() > 1) return;
    const absl::StatusOr<DataSplits> data =
        LoadData(spec, {.input = {}, .layers = {}, .loss = loss}, /*seed=*/1);
    if (!data.ok()) {
      PS_CHECK(BeginsWith(data.status(), spec.path));
      return;
    }
    CheckDataset(data->train);
    CheckDataset(data->test);
    PS_CHECK(data->train.Fingerprint() == data->test.Fingerprint());
  }
}

Bytes BytesOf(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace

void FuzzNpy(std::string_view input) {
  static DataFiles files({"X_train.npy", "X_test.npy"}, {"y_train.npy", "y_test.npy"});
  const std::vector<std::string_view> parts = PartsOf(input);
  files.Write(parts[0], parts.back());
  Load({.format = DataSpec::Format::kNpy, .path = files.path()});
}

void FuzzCsv(std::string_view input) {
  static DataFiles files({"train.csv", "test.csv"}, {});
  const std::vector<std::string_view> parts = PartsOf(input);
  files.Write(parts[0], {});
  Load({.format = DataSpec::Format::kCsv,
        .path = files.path(),
        .label_columns = {parts.begin() + 1, parts.end()}});
}

void FuzzIdx(std::string_view input) {
  static DataFiles files({"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"},
                         {"train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"});
  const std::vector<std::string_view> parts = PartsOf(input);
  files.Write(parts[0], parts.back());
  Load({.format = DataSpec::Format::kIdx, .path = files.path()});
}

void FuzzCifar10(std::string_view input) {
  static DataFiles files({"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                          "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"},
                         {});
  files.Write(input, {});
  const absl::StatusOr<RawSplits> data = ReadCifar10(files.path(), /*records_per_file=*/1);
  if (!data.ok()) return;
  PS_CHECK(data->train.labels.size() == 5 && data->test.labels.size() == 1);
  PS_CHECK(data->test.pixels.size() == data->test.shape.elements());
}

void FuzzGzip(std::string_view input) {
  constexpr size_t kUnpackedMax = size_t{64} << 10;
  const absl::StatusOr<Bytes> bytes = Gunzip(BytesOf(input), "a.gz", kUnpackedMax);
  PS_CHECK(!bytes.ok() || bytes->size() <= kUnpackedMax);
}

void FuzzModelFile(std::string_view input) {
  constexpr size_t kReadMax = size_t{1} << 20;
  static MemoryFile file;
  file.Write(input);
  const absl::StatusOr<ModelFile> model = ModelFile::Open(file.path());
  if (!model.ok()) {
    PS_CHECK(BeginsWith(model.status(), file.path()));
    return;
  }
  const TensorLayout& layout = model->layout();
  const absl::StatusOr<ModelHeader> again = ParseModelHeader(
      EncodeModelHeader(layout, model->metadata()), layout.parameters() * sizeof(float));
  PS_CHECK(again.ok());
  PS_CHECK(again->layout == layout && again->metadata == model->metadata());
  if (layout.parameters() > kReadMax) return;
  std::vector<float> weights(layout.parameters());
  const absl::Status read = model->Read(layout, weights);
  PS_CHECK(read.ok() || model->metadata().contains(kWeightsSha256));
}

}  // namespace slipstream
