#include "deploy/psctl/completion/describe_app.h"

#include <string>
#include <string_view>
#include <utility>

namespace slipstream {
namespace {

using Kind = ArgumentDescription::Kind;

ArgumentDescription DescribeArgument(std::string_view type_name) {
  if (type_name == "FILE" || type_name == "RUN.YAML") return {.kind = Kind::kFile, .choices = {}};
  if (type_name == "DIR") return {.kind = Kind::kDirectory, .choices = {}};
  if (type_name == "KEY=VALUE") return {.kind = Kind::kSetting, .choices = {}};
  ArgumentDescription argument;
  if (type_name.find('|') == type_name.npos) return argument;
  argument.kind = Kind::kChoice;
  while (!type_name.empty()) {
    const size_t end = type_name.find('|');
    argument.choices.emplace_back(type_name.substr(0, end));
    type_name.remove_prefix(end == type_name.npos ? type_name.size() : end + 1);
  }
  return argument;
}

OptionDescription DescribeOption(const CLI::Option& option) {
  OptionDescription description;
  for (const std::string& name : option.get_snames()) description.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) description.names.push_back("--" + name);
  description.takes_value = option.get_items_expected_max() > 0;
  if (description.takes_value) description.value = DescribeArgument(option.get_type_name());
  return description;
}

void Describe(const CLI::App& app, const std::vector<std::string>& words,
              std::vector<CommandDescription>& commands) {
  CommandDescription command;
  command.words = words;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      command.arguments.push_back(DescribeArgument(option->get_type_name()));
    } else {
      command.options.push_back(DescribeOption(*option));
    }
  }
  commands.push_back(std::move(command));
  for (const CLI::App* one : app.get_subcommands({})) {
    if (one->get_group().empty()) continue;  // Hidden.
    std::vector<std::string> path = words;
    path.push_back(one->get_name());
    Describe(*one, path, commands);
  }
}

}  // namespace

std::vector<CommandDescription> DescribeApp(const CLI::App& app) {
  std::vector<CommandDescription> commands;
  Describe(app, {}, commands);
  return commands;
}

}  // namespace slipstream
