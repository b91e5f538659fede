#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMPLETION_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMPLETION_H_

#include <string>
#include <vector>

#include "deploy/psctl/completion/command_description.h"

namespace slipstream {

/// A key that --set takes, and its values where they have names.
struct SettingDescription {
  std::string key;
  std::vector<std::string> choices;
};

/// What shells complete.
struct CompletionTable {
  std::vector<CommandDescription> commands;
  std::vector<SettingDescription> settings;

  /// The commands one word below `path`.
  std::vector<CommandDescription> Below(const std::string& path) const;
};

/// Of the given commands, with the settings of run.yaml.
CompletionTable MakeCompletionTable(std::vector<CommandDescription> commands);

/// Scripts that make a shell complete psctl's commands, options, files, choices and settings; each
/// says in its first lines how it is installed. They need no other package.
std::string BashCompletion(const CompletionTable& table);
std::string ZshCompletion(const CompletionTable& table);
std::string FishCompletion(const CompletionTable& table);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMPLETION_H_
