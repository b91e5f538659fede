#ifndef SLIPSTREAM_COMMON_CONFIG_RUN_TEXT_H_
#define SLIPSTREAM_COMMON_CONFIG_RUN_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/run/run_spec.h"

namespace slipstream {

/// The settings as a run.yaml in canonical form: every key that means something in this run, in
/// the order of the table. Reads back as an equal spec if `spec` came from a configuration.
std::string ToYaml(const RunSpec& spec);

/// One line for each key that all servers and workers of a run must agree on, in the order of the
/// table. Left out are those that each may have its own of: data.path, compute and log. A preset's
/// layers are written out, so that two versions of a program cannot mean different nets by it.
std::string FingerprintText(const RunSpec& spec);

/// XXH64 of FingerprintText.
uint64_t Fingerprint(const RunSpec& spec);

/// The first key that two runs with different fingerprints differ in, with both values:
/// `consistency.n is 2 against 1`.
std::optional<std::string> FirstDifference(const RunSpec& a, const RunSpec& b);

/// A run.yaml to begin with: every key with its meaning and its default, those that mean nothing
/// beside the defaults in comments.
std::string ConfigTemplate();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_RUN_TEXT_H_
