#include "deploy/psctl/completion/completion.h"

#include <utility>

#include "common/config/field_table.h"

namespace slipstream {

std::vector<CommandDescription> CompletionTable::Below(const std::string& path) const {
  std::vector<CommandDescription> below;
  for (const CommandDescription& command : commands) {
    if (!command.words.empty() && command.ParentPath() == path) below.push_back(command);
  }
  return below;
}

CompletionTable MakeCompletionTable(std::vector<CommandDescription> commands) {
  CompletionTable table = {.commands = std::move(commands), .settings = {}};
  for (const Field& field : Fields()) {
    SettingDescription setting = {.key = field.path, .choices = {}};
    if (const auto* scalar = std::get_if<ScalarType>(&field.type)) {
      if (const auto* choice = std::get_if<ChoiceType>(scalar)) setting.choices = choice->names;
      if (std::holds_alternative<FlagType>(*scalar)) setting.choices = {"false", "true"};
    }
    table.settings.push_back(std::move(setting));
  }
  return table;
}

}  // namespace slipstream
