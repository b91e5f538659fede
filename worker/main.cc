#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/base/limits.h"
#include "common/config/field_table.h"
#include "common/config/run_config.h"
#include "common/config/scalar_types.h"
#include "common/config/server_address.h"
#include "common/config/unexpected_arguments.h"
#include "common/log/log.h"
#include "common/log/logging.h"
#include "common/process/environment.h"
#include "common/process/exit_code.h"
#include "common/process/guarded_main.h"
#include "common/process/process_limits.h"
#include "common/process/stop_signal.h"
#include "common/process/version.h"
#include "common/rpc/library_settings.h"
#include "common/rpc/secure_credentials.h"
#include "common/security/credential_files.h"
#include "common/security/security_flags.h"
#include "worker/training/interruption.h"
#include "worker/training/worker_program.h"

namespace slipstream {
namespace {

constexpr char kExamples[] = R"(Examples:
  ps_worker --coordinator localhost:7070
  ps_worker --coordinator ps-0.ps:7070 --worker 3 --data-path /data/fashion-mnist --device cpu
  ps_worker --coordinator ps-0.ps:7070 --save-dir /models
  ps_worker --coordinator ps-0.ps:7070 --ca certs/ca.crt --worker 3

All other settings are the run's; the worker gets them from the coordinator.

Exit codes: 0 the run is over; 1 failed; 2 wrong flags; 69 a server cannot be reached; 74 the data
cannot be read; 75 fenced or refused, try again; 78 wrong settings, an unknown PS_ variable, or the
id of --worker is another process's now; 80 the run failed; 81 training diverged; 130, 143 stopped by
a signal.)";

// The worker ids that the coordinator accepts.
constexpr CountType kWorkerIds = {0, kWorkersMax - 1};

/// Adds the flags to `app`, which stores their values in the other arguments.
void AddFlags(CLI::App& app, WorkerProgram::Options& options, std::optional<uint32_t>& worker,
              SecuritySpec& security) {
  app.add_option("--coordinator", options.coordinator, "host:port of the first server")
      ->required()
      ->type_name("HOST:PORT")
      ->check(AddressError, "")
      ->envname("PS_COORDINATOR");
  app.add_option("--worker", worker, "Id of this worker (default: the lowest free one)")
      ->type_name("ID")
      ->check([](const std::string& text) { return ScalarError(kWorkerIds, text); })
      ->envname("PS_WORKER");
  app.add_option("--data-path", options.data_path, "Where this machine keeps the data")
      ->type_name("DIR")
      ->envname("PS_DATA_PATH");
  app.add_option("--device", options.device,
                 "auto, cpu, cuda, cuda:N, or several GPUs as cuda:0,1: what this worker computes "
                 "on")
      ->type_name("NAME")
      ->check([](const std::string& text) { return FlagError("compute.device", text); })
      ->envname("PS_COMPUTE_DEVICE");
  app.add_option("--precision", options.precision,
                 "fp32, bf16 or tf32: what this worker computes in")
      ->type_name("NAME")
      ->check([](const std::string& text) { return FlagError("compute.precision", text); })
      ->envname("PS_COMPUTE_PRECISION");
  const std::map<std::string, LogSpec::Level> levels = {{"debug", LogSpec::Level::kDebug},
                                                        {"info", LogSpec::Level::kInfo},
                                                        {"warning", LogSpec::Level::kWarning},
                                                        {"error", LogSpec::Level::kError}};
  app.add_option_function<std::string>(
         "--log-level",
         [&options, levels](const std::string& name) { options.log_level = levels.at(name); },
         "debug, info, warning or error, whatever the run says")
      ->type_name("LEVEL")
      ->check([](const std::string& text) { return FlagError("log.level", text); })
      ->envname("PS_LOG_LEVEL");
  const std::map<std::string, LogSpec::Format> formats = {{"text", LogSpec::Format::kText},
                                                          {"json", LogSpec::Format::kJson}};
  app.add_option_function<std::string>(
         "--log-format",
         [&options, formats](const std::string& name) { options.log_format = formats.at(name); },
         "text, or json for an object per line, whatever the run says")
      ->type_name("FORMAT")
      ->check([](const std::string& text) { return FlagError("log.format", text); })
      ->envname("PS_LOG_FORMAT");
  app.add_option("--init", options.init, "Where this machine keeps the weights to start from")
      ->type_name("FILE")
      ->envname("PS_MODEL_INIT");
  app.add_option("--save-dir", options.save_dir, "Where this worker saves weights it measures")
      ->type_name("DIR")
      ->envname("PS_MODEL_SAVE_DIR");
  app.add_option("--fallback-save-dir", options.fallback_save_dir,
                 "Where it saves them if --save-dir, or model.save_dir, is empty or fails")
      ->type_name("DIR");
  app.add_flag("--overwrite", options.overwrites, "Replaces a model of another run there");
  app.add_option("--state-dir", options.state_dir,
                 "Where this worker saves what it carries from push to push")
      ->type_name("DIR")
      ->envname("PS_WORKER_SAVE_STATE_DIRECTORY");
  AddSecurityFlags(app, security);
  app.set_version_flag("--version", VersionLine("ps_worker"));
  app.footer(kExamples);
}

/// Checks the credential files and fills in the options' credentials.
absl::Status Prepare(const SecuritySpec& security, WorkerProgram::Options& options) {
  CredentialHolder holder = {.role = CertifiedRole::kWorker};
  if (options.worker.has_value()) holder.number = Value(*options.worker);
  const CredentialFiles files = FilesFor(security, holder);
  const absl::StatusOr<OwnCredentials> own = CheckCredentials(files, holder, absl::Now());
  if (!own.ok()) return own.status();
  WarnAbout(*own, files, absl::Now());
  options.credentials = MakeChannelCredentials(files);
  return absl::OkStatus();
}

int Run(const WorkerProgram::Options& options, const StopSignal& stop) {
  Interruption interruption;
  // A jthread, so that it also ends if the code below throws.
  const std::jthread watch([&](const std::stop_token& is_over) {
    while (!is_over.stop_requested()) {
      if (!stop.WaitFor(absl::Milliseconds(50))) continue;
      LogInfo("stopping", {{"signal", stop.signal()}});
      return interruption.Stop();
    }
  });
  const absl::Status status = WorkerProgram(options, interruption).Run();
  if (!status.ok()) {
    LogError(std::string(status.message()));
    if (absl::IsUnavailable(status)) {
      LogError(
          fmt::format("psctl doctor --coordinator {} finds out what keeps this machine from it",
                      options.coordinator));
    }
    return static_cast<int>(ExitCodeFor(status));
  }
  return stop.ExitStatus();
}

int Main(int argc, char** argv) {
  UseSystemResolver();
  TuneForTransfers();
  TakeLibraryLogs();
  const StopSignal stop;
  CLI::App app("Trains a model that Slipstream servers hold.", "ps_worker");
  WorkerProgram::Options options;
  std::optional<uint32_t> worker;
  SecuritySpec security;
  AddFlags(app, options, worker, security);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_answer = ReportParseError(app, error, argc, argv, TakesSettings::kOthers);
    return static_cast<int>(is_answer ? ExitCode::kOk : ExitCode::kUsage);
  }
  const std::vector<Diagnostic> unknown = CheckVariables(EnvironmentMap(environ));
  if (!unknown.empty()) {
    std::fputs(ToString(unknown).c_str(), stderr);
    return static_cast<int>(ExitCode::kConfiguration);
  }
  if (const absl::Status room = CheckThreadRoom(kThreadsNeeded); !room.ok()) {
    std::fprintf(stderr, "ps_worker: error: %s\n", std::string(room.message()).c_str());
    return static_cast<int>(ExitCodeFor(room));
  }
  if (worker) options.worker = WorkerId{*worker};
  StartLogging({"worker", std::nullopt}, options.log_level.value_or(LogSpec::Level::kInfo),
               options.log_format.value_or(LogSpec::Format::kText));
  if (const absl::Status prepared = Prepare(security, options); !prepared.ok()) {
    LogError(std::string(prepared.message()));
    return static_cast<int>(ExitCodeFor(prepared));
  }
  return Run(options, stop);
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  return slipstream::GuardedMain("ps_worker", [&] { return slipstream::Main(argc, argv); });
}
