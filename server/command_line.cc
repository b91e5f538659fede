#include "server/command_line.h"

#include <CLI/CLI.hpp>

#include "common/base/limits.h"
#include "common/config/field_table.h"
#include "common/config/scalar_types.h"
#include "common/config/server_address.h"
#include "common/config/unexpected_arguments.h"
#include "common/process/exit_code.h"
#include "common/process/version.h"

namespace slipstream {
namespace {

constexpr char kDescription[] =
    "Serves one shard of the model of a run; the server of shard 0 also hosts the coordinator. Or "
    "combines the pushes of a group of workers to a shard.";

constexpr char kExamples[] = R"text(
Examples:
  One server on this machine:
    ps_server --config run.yaml --shard 0

  Two servers, each where cluster.servers says:
    ps_server --config run.yaml --shard 0 &
    ps_server --config run.yaml --shard 1 &

  Ports chosen by the system, as for tests:
    ps_server --config run.yaml --shard 0 --listen localhost:0 --port-file server-0 &
    ps_server --config run.yaml --shard 1 --listen localhost:0 --coordinator "$(cat server-0)" &

  The aggregator of the first group of workers for shard 1, where cluster.tree asks for it:
    ps_server --config run.yaml --shard 1 --aggregate 0 --listen localhost:7080

  Another seed than the file's:
    ps_server --config run.yaml --shard 0 --set seed=3

Settings: --set overrides PS_... variables (PS_SEED=3), which override the file.

Exit status: 0 the run has finished; 2 wrong usage; 69 the coordinator is not reached; 71 the log of
durability.level synced cannot be written: start it again; 74 a file, or the trained weights were
not saved; 75 try again (address in use); 78 wrong settings; 80 the run failed; 130 or 143 stopped by
a signal; 1 a bug.)text";

constexpr CountType kShards = {0, kServersMax - 1};
constexpr CountType kGroups = {0, kWorkersMax - 1};

/// Adds the flags to `app`; they end up in `line`.
void AddFlags(CLI::App& app, CommandLine& line) {
  app.footer(kExamples);
  app.set_version_flag("--version", VersionLine("ps_server"));
  app.add_option("--config", line.config, "The run.yaml that all servers of the run share")
      ->required()
      ->type_name("FILE");
  app.add_option("--shard", line.shard, "Which shard to serve, counted from 0")
      ->required()
      ->type_name("NUMBER")
      ->check([](const std::string& text) { return ScalarError(kShards, text); });
  app.add_option(
         "--aggregate", line.aggregate,
         "Combines the pushes to the shard of this group of workers (cluster.tree), counted "
         "from 0, in place of serving the shard; needs --listen")
      ->type_name("GROUP")
      ->check([](const std::string& text) { return ScalarError(kGroups, text); });
  app.add_option(
         "--listen", line.listen,
         "Where to listen, by default cluster.servers[shard]; port 0 lets the system choose")
      ->type_name("HOST:PORT");
  app.add_option("--port-file", line.port_file, "Written with host:port once the server listens")
      ->type_name("FILE");
  app.add_option("--coordinator", line.coordinator,
                 "Where shard 0 is served, by default cluster.servers[0]; for the other shards and "
                 "for aggregators")
      ->type_name("HOST:PORT")
      ->check(AddressError);
  app.add_flag("--accept-rollback", line.accept_rollback,
               "Goes on although the server's directory is an older copy than others know of: what "
               "came since is lost, or counts twice");
  app.add_option("--set", line.set, "Overrides a setting; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--http", line.http,
                 "Overrides http.listen: where to answer /metrics and other HTTP requests, or none")
      ->type_name("HOST:PORT");
  app.add_option("--log-level", line.log_level,
                 "Overrides log.level: debug, info, warning or error")
      ->type_name("LEVEL")
      ->check([](const std::string& text) { return FlagError("log.level", text); });
  app.add_option("--log-format", line.log_format,
                 "Overrides log.format: text, or json for an object per line")
      ->type_name("FORMAT")
      ->check([](const std::string& text) { return FlagError("log.format", text); });
  app.callback([&line] {
    if (line.aggregate.has_value()) {
      if (!line.listen.empty()) return;
      throw CLI::ValidationError(
          "--aggregate needs --listen HOST:PORT, as cluster.servers has no aggregators");
    }
    if (line.shard > 0 || line.coordinator.empty()) return;
    throw CLI::ValidationError("--coordinator is for the other shards: shard 0 hosts it");
  });
}

}  // namespace

std::variant<CommandLine, int> ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  CLI::App app(kDescription, "ps_server");
  AddFlags(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_answer = ReportParseError(app, error, argc, argv, TakesSettings::kThisProgram);
    return static_cast<int>(is_answer ? ExitCode::kOk : ExitCode::kUsage);
  }
  return line;
}

}  // namespace slipstream
