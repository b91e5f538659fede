#include "deploy/psctl/run/evaluate_command.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "deploy/psctl/complaint.h"
#include "deploy/psctl/run/directory.h"
#include "deploy/psctl/run/program_locations.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

}  // namespace

absl::StatusOr<std::vector<std::string>> EvaluatorArguments(const EvaluateArguments& arguments) {
  std::string model = arguments.model;
  std::string config = arguments.config;
  std::error_code error;
  if (fs::is_directory(model, error)) {
    const RunDirectory directory = RunDirectory::Of(model);
    if (!fs::exists(directory.ModelPath(), error)) {
      return absl::NotFoundError(model +
                                 " keeps no model.safetensors: its run has not ended, has "
                                 "failed, or saved its model elsewhere (model.save_dir)");
    }
    model = directory.ModelPath();
    if (config.empty()) config = directory.ConfigPath();
  }
  std::vector<std::string> words = {"--model", model};
  if (!config.empty()) words.insert(words.end(), {"--config", config});
  for (const std::string& override : arguments.overrides) {
    words.insert(words.end(), {"--set", override});
  }
  words.insert(words.end(), {"-o", arguments.format == OutputFormat::kJson ? "json" : "table"});
  return words;
}

int EvaluateCommand(const EvaluateArguments& arguments) {
  const absl::StatusOr<std::vector<std::string>> words = EvaluatorArguments(arguments);
  const absl::StatusOr<std::string> program = FindEvaluator(arguments.bin_dir);
  const absl::Status status = words.ok() ? program.status() : words.status();
  if (!status.ok()) {
    return EndWith(status);
  }
  return Become(*program, *words);
}

}  // namespace slipstream
