#include <fmt/format.h>

#include "deploy/psctl/completion/completion.h"

namespace slipstream {
namespace {

using Kind = ArgumentDescription::Kind;

constexpr char kHead[] =
    R"(# Completes psctl's command line in bash. For this shell: source <(psctl completion bash); for all:
# psctl completion bash >~/.local/share/bash-completion/completions/psctl
_psctl_reply() {
  mapfile -t COMPREPLY < <(compgen "$@" 2>/dev/null)
}

_psctl_settings() {
  local key=$1 current=$2
  if [[ -z $key ]]; then
    compopt -o nospace 2>/dev/null
    _psctl_reply -S = -W "$_psctl_keys" -- "$current"
    return
  fi
  case $key in
)";

// COMP_WORDBREAKS has '=' in it, so key=value comes as three words.
constexpr char kBody[] = R"(  esac
}

_psctl() {
  local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} key="" command="" i
  if [[ $current == = ]]; then
    key=$option option=${COMP_WORDS[COMP_CWORD - 2]} current=""
  elif [[ $option == = ]] && ((COMP_CWORD >= 3)); then
    key=${COMP_WORDS[COMP_CWORD - 2]} option=${COMP_WORDS[COMP_CWORD - 3]}
  fi
  if [[ $key == -* ]]; then option=$key key=""; fi
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command ${COMP_WORDS[i]}" in
)";

std::string Join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

/// The call that completes such an argument; nothing where anything may stand.
std::string ReplyFor(const ArgumentDescription& argument) {
  switch (argument.kind) {
    case Kind::kFile:
      return "compopt -o filenames 2>/dev/null; _psctl_reply -f -- \"$current\"";
    case Kind::kDirectory:
      return "compopt -o filenames 2>/dev/null; _psctl_reply -d -- \"$current\"";
    case Kind::kSetting:
      return "_psctl_settings \"$key\" \"$current\"";
    case Kind::kChoice:
      return fmt::format("_psctl_reply -W \"{}\" -- \"$current\"", Join(argument.choices));
    case Kind::kText:
      break;
  }
  return ":";
}

std::string OptionCases(const CompletionTable& table) {
  std::string text;
  for (const CommandDescription& command : table.commands) {
    for (const OptionDescription& option : command.options) {
      if (!option.takes_value) continue;
      std::string pattern;
      for (const std::string& name : option.names) {
        pattern += fmt::format("{}\"{} {}\"", pattern.empty() ? "" : " | ", command.Path(), name);
      }
      text += fmt::format("    {})\n      {}\n      return ;;\n", pattern, ReplyFor(option.value));
    }
  }
  return text;
}

std::string CommandCases(const CompletionTable& table) {
  std::string text;
  for (const CommandDescription& command : table.commands) {
    std::vector<std::string> options;
    for (const OptionDescription& option : command.options) {
      for (const std::string& name : option.names) options.push_back(name);
    }
    std::vector<std::string> below;
    for (const CommandDescription& one : table.Below(command.Path())) {
      below.push_back(one.words.back());
    }
    std::string reply = ":";
    if (!below.empty()) reply = ReplyFor({.kind = Kind::kChoice, .choices = below});
    if (!command.arguments.empty()) reply = ReplyFor(command.arguments.front());
    text += fmt::format(
        "    \"{}\")\n      if [[ $current == -* ]]; then\n"
        "        _psctl_reply -W \"{}\" -- \"$current\"\n      else\n        {}\n      fi ;;\n",
        command.Path(), Join(options), reply);
  }
  return text;
}

}  // namespace

std::string BashCompletion(const CompletionTable& table) {
  std::string keys;
  std::string values;
  for (const SettingDescription& setting : table.settings) {
    keys += (keys.empty() ? "" : " ") + setting.key;
    if (setting.choices.empty()) continue;
    values += fmt::format("    {}) _psctl_reply -W \"{}\" -- \"$current\" ;;\n", setting.key,
                          Join(setting.choices));
  }
  std::string commands;
  for (const CommandDescription& command : table.commands) {
    if (command.words.empty()) continue;
    commands += fmt::format("{}\"{} {}\"", commands.empty() ? "      " : " | ",
                            command.ParentPath(), command.words.back());
  }
  return fmt::format(
      "{}{}{}{}) command=${{command:+$command }}${{COMP_WORDS[i]}} ;;\n    esac\n"
      "  done\n  case \"$command $option\" in\n{}  esac\n  case $command in\n{}"
      "  esac\n}}\n\n_psctl_keys=\"{}\"\ncomplete -F _psctl psctl\n",
      kHead, values, kBody, commands, OptionCases(table), CommandCases(table), keys);
}

}  // namespace slipstream
