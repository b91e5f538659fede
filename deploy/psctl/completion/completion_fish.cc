#include <fmt/format.h>

#include <string_view>

#include "deploy/psctl/completion/completion.h"

namespace slipstream {
namespace {

using Kind = ArgumentDescription::Kind;

constexpr char kHead[] =
    R"(# Completes psctl's command line in fish. For this shell: psctl completion fish | source; for all:
# psctl completion fish >~/.config/fish/completions/psctl.fish
complete -c psctl -f
)";

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string WordsOf(const CompletionTable& table, const ArgumentDescription& argument) {
  if (argument.kind == Kind::kChoice) return fmt::format("{}", fmt::join(argument.choices, " "));
  std::string words;
  for (const SettingDescription& setting : table.settings) {
    if (setting.choices.empty()) words += fmt::format(" {}=", setting.key);
    for (const std::string& choice : setting.choices) {
      words += fmt::format(" {}={}", setting.key, choice);
    }
  }
  return words.substr(1);
}

std::string ArgumentFlags(const CompletionTable& table, const ArgumentDescription& argument) {
  switch (argument.kind) {
    case Kind::kFile:
      return " -F";
    case Kind::kDirectory:
      return " -a '(__fish_complete_directories)'";
    case Kind::kSetting:
    case Kind::kChoice:
      return " -a " + Quoted(WordsOf(table, argument));
    case Kind::kText:
      break;
  }
  return "";
}

/// True in fish where the words so far lead to this command and none below it.
std::string ConditionFor(const CompletionTable& table, const CommandDescription& command) {
  if (command.words.empty()) return "__fish_use_subcommand";
  std::string condition;
  for (const std::string& word : command.words) {
    condition +=
        fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ", word);
  }
  std::string below;
  for (const CommandDescription& one : table.Below(command.Path())) below += " " + one.words.back();
  if (!below.empty()) condition += "; and not __fish_seen_subcommand_from" + below;
  return condition;
}

std::string OptionLine(const CompletionTable& table, const std::string& condition,
                       const OptionDescription& option) {
  std::string line = "complete -c psctl -n " + Quoted(condition);
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    line += fmt::format(" -{} {}", is_long ? "l" : "s", name.substr(is_long ? 2 : 1));
  }
  if (option.takes_value) line += " -r" + ArgumentFlags(table, option.value);
  return line + " -d " + Quoted(option.help) + "\n";
}

}  // namespace

std::string FishCompletion(const CompletionTable& table) {
  std::string text = kHead;
  for (const CommandDescription& command : table.commands) {
    const std::string condition = ConditionFor(table, command);
    for (const CommandDescription& below : table.Below(command.Path())) {
      text += fmt::format("complete -c psctl -n {} -a {} -d {}\n", Quoted(condition),
                          below.words.back(), Quoted(below.help));
    }
    for (const OptionDescription& option : command.options) {
      text += OptionLine(table, condition, option);
    }
    for (const ArgumentDescription& argument : command.arguments) {
      const std::string flags = ArgumentFlags(table, argument);
      if (!flags.empty())
        text += fmt::format("complete -c psctl -n {}{}\n", Quoted(condition), flags);
    }
  }
  return text;
}

}  // namespace slipstream
