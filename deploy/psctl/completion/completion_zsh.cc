#include <fmt/format.h>

#include <string_view>

#include "deploy/psctl/completion/completion.h"

namespace slipstream {
namespace {

using Kind = ArgumentDescription::Kind;

constexpr char kHead[] = R"(#compdef psctl
# Completes psctl's command line in zsh. For this shell: source <(psctl completion zsh); for all:
# psctl completion zsh >_psctl, in a directory of $fpath.
)";

/// `text` within single quotes, with a backslash before what has a meaning in a specification.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return escaped;
}

std::string ActionFor(const ArgumentDescription& argument) {
  switch (argument.kind) {
    case Kind::kFile:
      return ":file:_files";
    case Kind::kDirectory:
      return ":directory:_directories";
    case Kind::kSetting:
      return ":setting:_psctl_settings";
    case Kind::kChoice:
      return fmt::format(":choice:({})", fmt::join(argument.choices, " "));
    case Kind::kText:
      break;
  }
  return ":value: ";
}

std::string SettingsFunction(const CompletionTable& table) {
  std::string values;
  std::string keys;
  for (const SettingDescription& setting : table.settings) {
    keys += " " + setting.key;
    if (setting.choices.empty()) continue;
    values +=
        fmt::format("      {}) compadd -- {} ;;\n", setting.key, fmt::join(setting.choices, " "));
  }
  return fmt::format(
      "_psctl_settings() {{\n  if [[ $PREFIX == *=* ]]; then\n    local key=${{PREFIX%%=*}}\n"
      "    compset -P '*='\n    case $key in\n{}    esac\n  else\n    compadd -S = --{}\n  "
      "fi\n}}\n",
      values, keys);
}

std::string FunctionName(const CommandDescription& command) {
  std::string name = "_psctl";
  for (const std::string& word : command.words) name += "_" + word;
  return name;
}

/// Chooses among the commands below, or completes options and arguments.
std::string CommandFunction(const CompletionTable& table, const CommandDescription& command) {
  const std::vector<CommandDescription> below = table.Below(command.Path());
  std::string text = FunctionName(command) + "() {\n";
  if (!below.empty()) {
    std::string names;
    std::string cases;
    for (const CommandDescription& one : below) {
      names += fmt::format(" '{}:{}'", one.words.back(), Escaped(one.help));
      cases += fmt::format("      {}) {} ;;\n", one.words.back(), FunctionName(one));
    }
    text += fmt::format(
        "  if (( CURRENT > 2 )); then\n    shift words\n    (( CURRENT-- ))\n"
        "    case $words[1] in\n{}    esac\n    return\n  fi\n  local -a commands=({})\n"
        "  _describe command commands\n",
        cases, names);
  }
  std::string specifications;
  for (const OptionDescription& option : command.options) {
    for (const std::string& name : option.names) {
      specifications +=
          fmt::format(" \\\n    '{}{}[{}]{}'", option.takes_value ? "*" : "", name,
                      Escaped(option.help), option.takes_value ? ActionFor(option.value) : "");
    }
  }
  for (const ArgumentDescription& argument : command.arguments) {
    specifications += fmt::format(" \\\n    ':{}'", ActionFor(argument).substr(1));
  }
  return text + "  _arguments" + specifications + "\n}\n";
}

}  // namespace

std::string ZshCompletion(const CompletionTable& table) {
  std::string text = kHead + SettingsFunction(table);
  for (const CommandDescription& command : table.commands) text += CommandFunction(table, command);
  // Read by the completion system, the file is the body of the function; sourced, it defines it.
  return text +
         "if [[ $funcstack[1] == _psctl ]]; then _psctl \"$@\"; else compdef _psctl psctl; fi\n";
}

}  // namespace slipstream
