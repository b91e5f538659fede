#ifndef SLIPSTREAM_COMMON_CONFIG_UNEXPECTED_ARGUMENTS_H_
#define SLIPSTREAM_COMMON_CONFIG_UNEXPECTED_ARGUMENTS_H_

#include <span>
#include <string>

namespace slipstream {

/// Who takes `--set KEY=VALUE`.
enum class TakesSettings { kThisProgram, kOthers };

/// Says which words of a command line a program does not take, in their order, and what was meant
/// where the first is the name of a setting: `--epochs 3` is `--set training.epochs=3`.
/// `unexpected` are among `all`, the words behind the program's name.
std::string ExplainUnexpected(std::span<const std::string> unexpected,
                              std::span<const std::string> all, TakesSettings takes);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_UNEXPECTED_ARGUMENTS_H_
