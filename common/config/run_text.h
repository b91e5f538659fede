#ifndef SLIPSTREAM_COMMON_CONFIG_RUN_TEXT_H_
#define SLIPSTREAM_COMMON_CONFIG_RUN_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/settings/run_spec.h"

namespace slipstream {

/// Returns the settings as a run.yaml in canonical form: every key that has a meaning in this run,
/// in the order of the table. It reads back as an equal spec if `spec` came from a configuration.
std::string ToYaml(const RunSpec& spec);

/// Returns one line for each key that all servers and workers of a run must agree on, in the order
/// of the table. Keys that may differ from process to process, such as data.path, are left out. A
/// preset's layers are written out, so that two versions of a program cannot mean different nets by
/// it.
std::string FingerprintText(const RunSpec& spec);

/// Returns the XXH64 of FingerprintText.
uint64_t Fingerprint(const RunSpec& spec);

/// Returns the first key in which two runs with different fingerprints differ, with both values:
/// `consistency.n is 2 against 1`.
std::optional<std::string> FirstDifference(const RunSpec& a, const RunSpec& b);

/// Returns a run.yaml to begin with: every key with its meaning and its default. Keys that have no
/// meaning beside the defaults are comments.
std::string ConfigTemplate();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_RUN_TEXT_H_
