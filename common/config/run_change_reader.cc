#include "common/config/run_change_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include "common/config/run_config.h"
#include "common/config/run_text.h"
#include "common/settings/algorithm_rows.h"
#include "common/settings/optimizer_rows.h"
#include "common/settings/policy_rows.h"

namespace slipstream {
namespace {

constexpr size_t kChangesMax = 16;
constexpr size_t kBytesMax = 256;

constexpr std::string_view kPolicy = "consistency.policy";
constexpr std::string_view kRate = "optimizer.learning_rate";
constexpr std::string_view kOuterRate = "worker.outer.learning_rate";

bool IsPolicyParameter(std::string_view key) {
  return std::ranges::any_of(kPolicyParameters, [key](const ParameterRow& row) {
    return key == fmt::format("consistency.{}", row.key);
  });
}

absl::Status CheckSize(const std::vector<std::string>& changes) {
  const bool is_long = std::ranges::any_of(
      changes, [](const std::string& change) { return change.size() > kBytesMax; });
  if (changes.empty() || changes.size() > kChangesMax || is_long) {
    return absl::InvalidArgumentError(
        fmt::format("a change has 1 to {} settings KEY=VALUE, each of at most {} bytes",
                    kChangesMax, kBytesMax));
  }
  return absl::OkStatus();
}

/// Checks that the servers' rule has the rate of this key.
absl::Status CheckRate(const RunSpec& run, std::string_view key) {
  const bool has_local_steps = RowOf(run.worker.algorithm).has_local_weights;
  if (has_local_steps && key == kRate) {
    return absl::FailedPreconditionError(
        fmt::format("{} is the rate of the workers' own steps under {}, which stays as it is; {} "
                    "can change",
                    key, RowOf(run.worker.algorithm).name, kOuterRate));
  }
  const RuleRow& rule = RowOf(run.server_optimizer().kind);
  if (!rule.takes_values) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format("{}: {} has no learning rate", key, rule.name));
}

absl::Status CheckMayChange(const RunSpec& run, const std::set<std::string_view>& keys) {
  for (const std::string_view key : keys) {
    if (key == kRate || key == kOuterRate) {
      if (absl::Status has = CheckRate(run, key); !has.ok()) return has;
    } else if (IsPolicyParameter(key) && !keys.contains(kPolicy)) {
      return absl::FailedPreconditionError(
          fmt::format("{} can change only together with {}: name the policy, too", key, kPolicy));
    } else if (key != kPolicy && !IsPolicyParameter(key)) {
      return absl::FailedPreconditionError(
          fmt::format("{} cannot change while a run trains; {} with its parameters, {} and {} can",
                      key, kPolicy, kRate, kOuterRate));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunChange> ReadRunChange(const RunSpec& run,
                                        const std::vector<std::string>& changes) {
  if (absl::Status size = CheckSize(changes); !size.ok()) return size;
  absl::StatusOr<RunSpec> settings =
      ToStatusOr(ParseRunConfig(ToYaml(run), "settings", {.set = changes, .environment = {}}));
  if (!settings.ok()) return settings.status();
  std::set<std::string_view> keys;
  for (const std::string_view change : changes) keys.insert(change.substr(0, change.find('=')));
  if (absl::Status may = CheckMayChange(run, keys); !may.ok()) return may;
  return RunChange{.settings = *std::move(settings), .sets_policy = keys.contains(kPolicy)};
}

}  // namespace slipstream
