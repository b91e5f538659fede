#ifndef SLIPSTREAM_COMMON_CONFIG_COMBINATIONS_H_
#define SLIPSTREAM_COMMON_CONFIG_COMBINATIONS_H_

#include <span>
#include <string_view>

#include "common/settings/run_spec.h"

namespace slipstream {

/// A run under one of its policies, and the rows of the tables that it chooses.
struct StageFacts {
  StageFacts(const RunSpec& of_run, const ConsistencySpec& of_stage);

  const RunSpec& run;
  const PolicyRow& policy;
  const PolicyTraits& traits;  // Of the row, without the staleness guard.
  const AlgorithmRow& algorithm;
  const RuleRow& rule;  // Of optimizer.kind.
  const ScalingRow& scaling;
};

/// Some of the values of a key: one side of a combination.
struct Values {
  std::string_view key;

  /// Which values they are, to go after the key: a value, "other than VALUE", "above NUMBER", or
  /// "given" for any but the default. With `holds` it is there for the reader alone, and may be
  /// empty for a key that has names for its values, which are then asked one by one.
  std::string_view which;

  /// Returns whether the key has one of these values, if `which` does not say it.
  bool (*holds)(const StageFacts& facts) = nullptr;

  /// Another key that `holds` reads.
  std::string_view reads = "";

  /// Returns whether the key has a part in the run, and one of these values.
  bool Hold(const StageFacts& facts) const;
};

/// Two settings that do not go together. The errors, the table of the documentation and the
/// schema's descriptions are made from it.
struct Combination {
  Values first;  // Where it is reported.
  Values second;

  /// Completes "FIRST does not go with SECOND: …". `{maker}` is why the servers have no versions.
  std::string_view why;

  /// The way out: `{first}` and `{second}` are the values of that key that would do, and `{needed}`
  /// is the policy that the algorithm needs.
  std::string_view remedy;

  /// Whether it depends on the policy, so that each policy of the run is asked.
  bool is_of_policy() const {
    return first.key == "consistency.policy" || second.key == "consistency.policy";
  }
};

/// Returns all combinations of two settings that do not go together.
std::span<const Combination> Combinations();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_COMBINATIONS_H_
