#include "worker/data/load_data.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "worker/data/cifar10_format.h"
#include "worker/data/csv_format.h"
#include "worker/data/file_bytes.h"
#include "worker/data/idx_format.h"
#include "worker/data/npy_format.h"
#include "worker/data/raw_examples.h"
#include "worker/data/synthetic.h"

namespace slipstream {
namespace {

/// The mean and deviation of a channel's pixels, as shares of 255.
struct ChannelScale {
  float mean = 0;
  float deviation = 1;
};

// Measured once over each training set; the generated one's is of each channel, in the shape that
// it is drawn in. They are constants, so that the values that a net sees do not depend on which
// part of a set is loaded.
constexpr ChannelScale kSyntheticScale[] = {{0.2054f, 0.2084f}};
constexpr ChannelScale kFashionMnistScale[] = {{0.2860f, 0.3530f}};
constexpr ChannelScale kCifar10Scale[] = {
    {0.4914f, 0.2470f}, {0.4822f, 0.2435f}, {0.4465f, 0.2616f}};

std::span<const ChannelScale> Scale(DataSpec::Format format) {
  switch (format) {
    case DataSpec::Format::kSynthetic:
      return kSyntheticScale;
    case DataSpec::Format::kIdx:
      return kFashionMnistScale;
    case DataSpec::Format::kCifar10:
      return kCifar10Scale;
    case DataSpec::Format::kNpy:
    case DataSpec::Format::kCsv:
      break;
  }
  PS_CHECK(false);
  return {};
}

std::string NameOf(const DataSpec& spec) {
  return spec.format == DataSpec::Format::kSynthetic ? kSyntheticName : spec.path;
}

ExampleShape ShapeOf(const std::vector<uint32_t>& input) {
  PS_CHECK(input.size() == 3);
  return {.channels = input[0], .height = input[1], .width = input[2]};
}

absl::StatusOr<RawSplits> LoadRaw(const DataSpec& spec, const ModelSpec& model, uint64_t seed,
                                  const ReadProgress& progress) {
  switch (spec.format) {
    case DataSpec::Format::kSynthetic:
      return GenerateSynthetic(ShapeOf(model.input), seed, spec.train_examples, spec.test_examples,
                               progress);
    case DataSpec::Format::kIdx:
      return ReadIdx(spec.path, progress);
    case DataSpec::Format::kCifar10:
      return ReadCifar10(spec.path, kCifar10Records, progress);
    case DataSpec::Format::kNpy:
    case DataSpec::Format::kCsv:
      break;
  }
  PS_CHECK(false);
  return absl::InternalError("unreachable");
}

absl::StatusOr<RawExamples> LoadRawTest(const DataSpec& spec, const ModelSpec& model, uint64_t seed,
                                        const ReadProgress& progress) {
  if (spec.format == DataSpec::Format::kIdx) return ReadIdxTest(spec.path, progress);
  if (spec.format == DataSpec::Format::kCifar10) {
    return ReadCifar10Test(spec.path, kCifar10Records, progress);
  }
  PS_CHECK(spec.format == DataSpec::Format::kSynthetic);
  absl::StatusOr<RawSplits> raw =
      GenerateSynthetic(ShapeOf(model.input), seed, 0, spec.test_examples, progress);
  if (!raw.ok()) return raw.status();
  return std::move(raw->test);
}

ByteScale ScaleOf(DataSpec::Pixels pixels, const ChannelScale& channel) {
  switch (pixels) {
    case DataSpec::Pixels::kStandardised:
      return {.divisor = 255.0f, .mean = channel.mean, .deviation = channel.deviation};
    case DataSpec::Pixels::kMeanSubtracted:
      return {.mean = 255.0f * channel.mean};
    case DataSpec::Pixels::kRaw:
      break;
  }
  return {};
}

/// Replaces each label by a target.
void MakeTargets(Dataset& dataset) {
  dataset.targets.resize(dataset.labels.size() * dataset.outputs);
  for (size_t i = 0; i < dataset.labels.size(); ++i) {
    dataset.targets[i * dataset.outputs + dataset.labels[i]] = 1;
  }
  dataset.labels.clear();
}

/// Returns a set of images in ten classes, whose values are as `spec` says, with targets if the
/// loss needs them.
Dataset MakeImages(RawExamples raw, const DataSpec& spec, ModelSpec::Loss loss) {
  std::vector<ByteScale> scales;
  for (const ChannelScale& channel : Scale(spec.format)) {
    scales.push_back(ScaleOf(spec.pixels, channel));
  }
  Dataset images;
  images.shape = raw.shape;
  images.outputs = kClasses;
  images.examples = ExampleValues(std::move(raw.pixels), std::move(scales));
  images.labels.assign(raw.labels.begin(), raw.labels.end());
  if (loss == ModelSpec::Loss::kMse) MakeTargets(images);
  return images;
}

absl::StatusOr<DataSplits> LoadSplits(const DataSpec& spec, const ModelSpec& model, uint64_t seed,
                                      const ReadProgress& progress) {
  if (spec.format == DataSpec::Format::kNpy) return ReadNpy(spec.path, model.loss, progress);
  if (spec.format == DataSpec::Format::kCsv) {
    return ReadCsv(spec, model.loss, progress);
  }
  absl::StatusOr<RawSplits> raw = LoadRaw(spec, model, seed, progress);
  if (!raw.ok()) return raw.status();
  return DataSplits{MakeImages(std::move(raw->train), spec, model.loss),
                    MakeImages(std::move(raw->test), spec, model.loss)};
}

absl::StatusOr<Dataset> LoadTest(const DataSpec& spec, const ModelSpec& model, uint64_t seed,
                                 const ReadProgress& progress) {
  if (spec.format == DataSpec::Format::kNpy) return ReadNpyTest(spec.path, model.loss, progress);
  if (spec.format == DataSpec::Format::kCsv) {
    return ReadCsvTest(spec, model.loss, progress);
  }
  absl::StatusOr<RawExamples> raw = LoadRawTest(spec, model, seed, progress);
  if (!raw.ok()) return raw.status();
  return MakeImages(*std::move(raw), spec, model.loss);
}

/// If a file was not found, adds to the message where it was looked for and how to choose another
/// directory.
absl::Status WithRemedy(const absl::Status& status, const DataSpec& spec) {
  if (!absl::IsNotFound(status)) return status;
  std::string where = "data.path is " + spec.path;
  if (const std::string source = DataSource(spec); source != spec.path) {
    where += fmt::format(", which means {}, as paths are relative to where a program is started",
                         source);
  }
  return absl::NotFoundError(
      fmt::format("{}; {}. Name another directory with --set data.path=DIR, or for one worker with "
                  "ps_worker --data-path DIR",
                  std::string(status.message()), where));
}

/// Returns the result of `load`. Turns a lack of memory into a status, and adds a remedy to
/// NOT_FOUND.
template <typename Load>
auto Guarded(const DataSpec& spec, Load load) -> decltype(load()) {
  try {
    auto loaded = load();
    if (!loaded.ok()) return WithRemedy(loaded.status(), spec);
    return loaded;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(fmt::format("{}: no memory for the data", NameOf(spec)));
  }
}

}  // namespace

std::string DataSource(const DataSpec& spec) {
  if (spec.format == DataSpec::Format::kSynthetic) return kSyntheticName;
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(spec.path, error);
  return error ? spec.path : absolute.lexically_normal().string();
}

absl::StatusOr<DataSplits> LoadData(const DataSpec& spec, const ModelSpec& model, uint64_t seed,
                                    const ReadProgress& progress) {
  return Guarded(spec, [&] { return LoadSplits(spec, model, seed, progress); });
}

absl::StatusOr<Dataset> LoadTestData(const DataSpec& spec, const ModelSpec& model, uint64_t seed,
                                     const ReadProgress& progress) {
  return Guarded(spec, [&] { return LoadTest(spec, model, seed, progress); });
}

}  // namespace slipstream
