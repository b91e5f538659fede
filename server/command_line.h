#ifndef SLIPSTREAM_SERVER_COMMAND_LINE_H_
#define SLIPSTREAM_SERVER_COMMAND_LINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace slipstream {

/// What ps_server is told by its arguments; empty where nothing was said.
struct CommandLine {
  std::string config;
  uint32_t shard = 0;
  std::string listen;
  std::string port_file;
  std::string coordinator;
  std::vector<std::string> set;
  std::string log_level;
  std::string log_format;
};

/// The arguments, or the exit status of a process that has nothing more to do: help and version
/// have been printed, or what is wrong with the arguments.
std::variant<CommandLine, int> ParseCommandLine(int argc, const char* const* argv);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_COMMAND_LINE_H_
