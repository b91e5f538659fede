#ifndef SLIPSTREAM_SERVER_COMMAND_LINE_H_
#define SLIPSTREAM_SERVER_COMMAND_LINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace slipstream {

/// The arguments of ps_server; a member is empty if its argument was not given.
struct CommandLine {
  std::string config;
  uint32_t shard = 0;

  /// The group of workers whose pushes the process combines, in place of serving the shard.
  std::optional<uint32_t> aggregate;
  std::string listen;
  std::string port_file;
  std::string coordinator;
  std::vector<std::string> set;
  std::string http;
  std::string log_level;
  std::string log_format;
  bool accept_rollback = false;
};

/// Returns the arguments, or the exit status of a process that has nothing more to do: it has
/// printed help, its version, or what is wrong with the arguments.
std::variant<CommandLine, int> ParseCommandLine(int argc, const char* const* argv);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_COMMAND_LINE_H_
