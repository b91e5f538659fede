#ifndef SLIPSTREAM_TESTS_SIMULATION_EVIDENCE_H_
#define SLIPSTREAM_TESTS_SIMULATION_EVIDENCE_H_

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/history.h"
#include "tests/simulation/scenario.h"

namespace slipstream {

/// The violations that the checkers found, as text. Only the first few are kept.
class Findings {
 public:
  template <typename... Arguments>
  void Add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    constexpr size_t kShown = 10;
    if (lines_.size() < kShown) {
      lines_.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
    }
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

/// A push and all its decisions.
struct PushEvidence {
  PushMade made;
  std::vector<PushReply> decisions;

  /// The first decision that was not a refusal: it determines the push's result.
  std::optional<PushReply> taken;

  /// The values that have reached the shard, if they travelled encoded.
  Values arrived;
};

/// A gradient in the weights, as found in the weights themselves or, where it does not show there
/// by itself, in the answer to its push. CheckNumbers compares all of a version's weights.
struct Entry {
  uint32_t slot = 0;
  Version version{};                   // The first version that contains it.
  double change = 0;                   // At its counting position, if it shows there.
  const PushEvidence* push = nullptr;  // Null if nobody sent it.
};

/// A history sorted for the checkers. It contains only what was observed, and none of the cores'
/// rules.
struct Evidence {
  /// `shows_gradients`: see Scenario.
  Evidence(const History& history, bool shows_gradients);
  Evidence(const Evidence&) = delete;
  Evidence& operator=(const Evidence&) = delete;

  /// Whether entries were found in the weights.
  const bool is_shown;

  std::map<PushKey, PushEvidence> pushes;

  /// By shard: every version of every generation.
  std::vector<std::map<GenerationVersion, Values>> published;

  /// By shard and version: the versions that lead to the final one. Where a shard went on from a
  /// checkpoint, they are the older generation's up to that, and then the new generation's.
  std::vector<std::map<Version, Values>> weights;

  /// Returns whether the version is one of these. Any other version was lost with its generation.
  bool Survives(ShardId shard, const GenerationVersion& version) const;

  /// By shard and version, in order of slots. A version may have no entries.
  std::vector<std::map<Version, std::vector<Entry>>> entries;

  /// By shard: the versions that the stages after the first began with.
  std::vector<std::vector<Version>> stage_begins;

  /// Returns the stage of the round that made this version.
  uint32_t StageOf(size_t shard, Version version) const {
    return static_cast<uint32_t>(std::ranges::count_if(
        stage_begins[shard], [version](Version begin) { return begin < version; }));
  }

  /// Mini-batches of which a shard has refused a gradient as too stale.
  std::set<std::pair<ShardId, uint64_t>> too_stale;

  /// Mini-batches that a shard has lost, because it went on from a checkpoint: a gradient was in a
  /// version that does not lead to the final one, or was refused as one of an older generation.
  std::set<std::pair<ShardId, uint64_t>> lost;

  /// Mini-batches with such a gradient of a worker that died.
  std::set<uint64_t> lost_with_dead;

  /// Incarnations that were members and no longer are at the end of training.
  std::set<Incarnation> died;

  /// Set if time or accuracy ended the run before its last step.
  bool ended_early = false;

 private:
  void OnReturned(const ShardReturned& returned, Version& newest);
  void OnDecided(const PushDecided& decided);

  /// Finds the generations that lead to the final weights, and fills `weights`.
  void FindLine(size_t shard);
  void FindLost();
  void FindEntriesInWeights();
  void FindEntriesInAnswers();
  void FindDead(const History& history);

  /// By shard and generation: where the generation begins; the first generation is not here.
  std::vector<std::map<Generation, SavedVersion>> begins_;

  /// By shard: the generations that lead to the final weights, and the last version of each that
  /// does.
  std::vector<std::map<Generation, Version>> line_;
};

std::string Text(const PushKey& push);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_EVIDENCE_H_
