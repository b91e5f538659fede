#ifndef SLIPSTREAM_TESTS_SERVER_STORAGE_CHECKPOINT_FIXTURE_H_
#define SLIPSTREAM_TESTS_SERVER_STORAGE_CHECKPOINT_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/layout/tensor_parts.h"
#include "server/storage/checkpoint_store.h"

namespace slipstream {

inline constexpr uint64_t kRun = 0xab;
inline constexpr ShardId kShard{1};
inline constexpr char kDirectory[] = "/checkpoints/00000000000000ab/shard-1";

/// The part of a model that the shard has: all of one tensor, and a half of another.
inline constexpr ParameterRange kRange = {.begin = 2000, .end = 7000};

inline TensorLayout WholeModel() {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("fc1.weight", {100, 40}).ok());
  EXPECT_TRUE(layout.Append("fc1.bias", {3000}).ok());
  return layout;
}

inline SavedVersion Saved(uint64_t generation, uint64_t version, uint32_t stage = 0) {
  return {.generation = Generation{generation}, .version = Version{version}, .stage = stage};
}

/// The parts of a checkpoint.
struct Content {
  std::vector<float> weights = std::vector<float>(kRange.size());
  std::vector<float> momentum = std::vector<float>(kRange.size());
  std::string state = std::string(24'000, '\0');

  /// Returns numbers that a seed draws; with all three files, a checkpoint of about 64 KiB.
  static Content Of(uint64_t seed) {
    std::mt19937_64 random(seed);
    Content content;
    for (float& value : content.weights) value = static_cast<float>(random() % 1000);
    for (float& value : content.momentum) value = static_cast<float>(random() % 1000);
    for (char& byte : content.state) byte = static_cast<char>(random());
    return content;
  }

  friend bool operator==(const Content&, const Content&) = default;
};

inline absl::StatusOr<std::unique_ptr<CheckpointStore>> OpenStore(Disk& disk) {
  return CheckpointStore::Open(disk, "/checkpoints", kRun, kShard);
}

inline absl::Status SaveContent(CheckpointStore& store, const SavedVersion& saved,
                                const Content& content, uint64_t log = 0) {
  const CheckpointArray arrays[] = {{"weights", content.weights}, {"state0", content.momentum}};
  return store.Save({.run = kRun, .shard = kShard, .range = kRange, .saved = saved, .log = log},
                    PartOf(WholeModel(), kRange), content.state, arrays);
}

inline absl::Status LoadArrays(CheckpointStore& store, const SavedVersion& saved,
                               std::span<const LoadedArray> arrays) {
  return store.Load(saved,
                    [arrays](const CheckpointFolder& folder) { return folder.ReadArrays(arrays); });
}

inline absl::StatusOr<std::string> LoadState(CheckpointStore& store, const SavedVersion& saved) {
  absl::StatusOr<std::string> state;
  const absl::Status loaded = store.Load(saved, [&state](const CheckpointFolder& folder) {
    state = folder.ReadState();
    return state.status();
  });
  if (!loaded.ok()) return loaded;
  return state;
}

inline absl::StatusOr<Content> LoadContent(CheckpointStore& store, const SavedVersion& saved) {
  Content content;
  absl::StatusOr<std::string> state = LoadState(store, saved);
  if (!state.ok()) return state.status();
  content.state = *std::move(state);
  const LoadedArray arrays[] = {{"state0", content.momentum}, {"weights", content.weights}};
  absl::Status loaded = LoadArrays(store, saved, arrays);
  if (!loaded.ok()) return loaded;
  return content;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_STORAGE_CHECKPOINT_FIXTURE_H_
