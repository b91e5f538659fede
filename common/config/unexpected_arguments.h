#ifndef SLIPSTREAM_COMMON_CONFIG_UNEXPECTED_ARGUMENTS_H_
#define SLIPSTREAM_COMMON_CONFIG_UNEXPECTED_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <span>
#include <string>

namespace slipstream {

/// The programs that take `--set KEY=VALUE`.
enum class TakesSettings { kThisProgram, kOthers };

/// Returns a message that lists the unexpected words of a command line, in their order. If the
/// first flag among them has the name of a setting, suggests the right form: `--set
/// training.epochs=3` for
/// `--epochs 3`. `unexpected` is a part of `all`, the words after the program's name.
std::string ExplainUnexpected(std::span<const std::string> unexpected,
                              std::span<const std::string> all, TakesSettings takes);

/// Prints why `app` cannot take its command line, or the help or version that this asks for.
/// `error` is what App::parse threw for `argc` and `argv`. Of unexpected words and missing ones it
/// names the former, since a typo in a flag makes both. Returns whether all was right: it was help
/// or the version that was asked for.
bool ReportParseError(const CLI::App& app, const CLI::ParseError& error, int argc,
                      const char* const* argv, TakesSettings takes);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_UNEXPECTED_ARGUMENTS_H_
