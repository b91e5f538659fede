#ifndef SLIPSTREAM_TESTS_SIMULATION_EVIDENCE_H_
#define SLIPSTREAM_TESTS_SIMULATION_EVIDENCE_H_

#include <fmt/format.h>

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

/// What the checkers found wrong, for people; the first few.
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

/// A push and everything that became of it.
struct PushEvidence {
  PushMade made;
  std::vector<PushReply> decisions;

  /// The first one that was not refused: it says what the push came to.
  std::optional<PushReply> taken;
};

/// A gradient that is in the weights, as the weights themselves tell.
struct Entry {
  uint32_t slot = 0;
  Version version{};  // The first one that has it.
  double change = 0;
  const PushEvidence* push = nullptr;  // Null where nobody sent it.
};

/// A history sorted for the checkers: no more than what was seen, and no rule of the cores.
struct Evidence {
  explicit Evidence(const History& history);
  Evidence(const Evidence&) = delete;
  Evidence& operator=(const Evidence&) = delete;

  std::map<PushKey, PushEvidence> pushes;

  /// By shard and version.
  std::vector<std::map<Version, Values>> weights;

  /// By shard and version, in order of slots; a version may have none.
  std::vector<std::map<Version, std::vector<Entry>>> entries;

  /// Mini-batches of which a shard refused a gradient as too stale.
  std::set<std::pair<ShardId, uint64_t>> too_stale;

  /// Incarnations that were members and are not at the end of training.
  std::set<Incarnation> died;

  /// Time or accuracy ended the run before its last step.
  bool ended_early = false;

 private:
  void FindEntries();
  void FindDead(const History& history);
};

std::string Text(const PushKey& push);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_EVIDENCE_H_
