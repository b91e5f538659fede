#ifndef SLIPSTREAM_COMMON_CONFIG_RUN_CHANGE_READER_H_
#define SLIPSTREAM_COMMON_CONFIG_RUN_CHANGE_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/settings/run_change.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// Reads a change of a run that trains with the settings `run`. Each of `changes` is `key=value`,
/// as for --set: consistency.policy, with parameters of the policy, or the learning rate of the
/// servers' rule. A parameter that is not given keeps its value if the policy stays the same, and
/// else has its default. INVALID_ARGUMENT if run.yaml could not have these settings;
/// FAILED_PRECONDITION, which names the key, if a setting cannot change while a run trains.
absl::StatusOr<RunChange> ReadRunChange(const RunSpec& run,
                                        const std::vector<std::string>& changes);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_RUN_CHANGE_READER_H_
