#include "deploy/psctl/completion/completion.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/config/field_table.h"

namespace slipstream {
namespace {

using Kind = ArgumentDescription::Kind;

/// Returns `words` with the words that bash split at '=' put together again.
std::vector<std::string> JoinAtSigns(const std::vector<std::string>& words) {
  std::vector<std::string> joined;
  bool is_behind_sign = false;
  for (const std::string& word : words) {
    if (!joined.empty() && (word == "=" || is_behind_sign)) {
      joined.back() += word;
    } else {
      joined.push_back(word);
    }
    is_behind_sign = word == "=";
  }
  return joined;
}

/// Returns key=value for every value of the key in `typed`, or while it has no sign yet, every key
/// with a sign.
std::vector<std::string> Settings(const std::string& typed) {
  const size_t sign = typed.find('=');
  std::vector<std::string> settings;
  for (const Field& field : Fields()) {
    if (sign == typed.npos) settings.push_back(field.path + "=");
    if (sign == typed.npos || field.path != typed.substr(0, sign)) continue;
    const auto* scalar = std::get_if<ScalarType>(&field.type);
    if (scalar == nullptr) continue;
    std::vector<std::string> values;
    if (const auto* choice = std::get_if<ChoiceType>(scalar)) {
      values.assign(choice->names.begin(), choice->names.end());
    }
    if (std::holds_alternative<FlagType>(*scalar)) values = {"false", "true"};
    for (const std::string& value : values) settings.push_back(field.path + "=" + value);
  }
  return settings;
}

std::vector<std::string> ValuesOf(const ArgumentDescription& argument, const std::string& typed) {
  switch (argument.kind) {
    case Kind::kFile:
      return {kCompleteFile};
    case Kind::kDirectory:
      return {kCompleteDirectory};
    case Kind::kSetting:
      return Settings(typed);
    case Kind::kChoice:
      return argument.choices;
    case Kind::kText:
      break;
  }
  return {};
}

const OptionDescription* FindOption(const CommandDescription& command, const std::string& name) {
  for (const OptionDescription& option : command.options) {
    if (option.takes_value &&
        std::find(option.names.begin(), option.names.end(), name) != option.names.end()) {
      return &option;
    }
  }
  return nullptr;
}

const CommandDescription* FindCommand(const std::vector<CommandDescription>& commands,
                                      const std::string& path) {
  for (const CommandDescription& command : commands) {
    if (command.Path() == path) return &command;
  }
  return nullptr;
}

/// Returns everything that may stand in place of `typed`, whether it begins like that or not.
/// `option` is the option whose value is being typed, if any.
std::vector<std::string> AllCandidates(const std::vector<CommandDescription>& commands,
                                       const CommandDescription& command,
                                       const OptionDescription* option, const std::string& typed) {
  if (option != nullptr) return ValuesOf(option->value, typed);
  std::vector<std::string> candidates;
  if (const size_t sign = typed.find('='); typed.starts_with("-") && sign != typed.npos) {
    const std::string begin = typed.substr(0, sign + 1);
    option = FindOption(command, typed.substr(0, sign));
    if (option == nullptr) return {};
    for (const std::string& value : ValuesOf(option->value, typed.substr(sign + 1))) {
      candidates.push_back(value.starts_with(":") ? value : begin + value);
    }
  } else if (typed.starts_with("-")) {
    for (const OptionDescription& one : command.options) {
      candidates.insert(candidates.end(), one.names.begin(), one.names.end());
    }
  } else if (!command.arguments.empty()) {
    candidates = ValuesOf(command.arguments.front(), typed);
  } else {
    for (const CommandDescription& one : commands) {
      if (one.words.empty() || one.ParentPath() != command.Path()) continue;
      candidates.push_back(one.words.back());
    }
  }
  return candidates;
}

}  // namespace

std::vector<std::string> CompletionCandidates(const std::vector<CommandDescription>& commands,
                                              const std::vector<std::string>& words) {
  if (words.empty()) return {};
  std::vector<std::string> whole = JoinAtSigns(words);
  const std::string typed = std::move(whole.back());
  whole.pop_back();

  const CommandDescription* command = FindCommand(commands, "");
  if (command == nullptr) return {};
  const OptionDescription* option = nullptr;
  for (const std::string& word : whole) {
    const bool is_value = option != nullptr;
    option = is_value ? nullptr : FindOption(*command, word);
    if (is_value || option != nullptr) continue;
    std::string path = command->Path();
    if (!path.empty()) path += ' ';
    const CommandDescription* below = FindCommand(commands, path.append(word));
    if (below != nullptr) command = below;
  }

  // The shell has the part before the sign already.
  const size_t kept = typed == words.back() ? 0 : typed.rfind('=') + 1;
  std::vector<std::string> candidates;
  for (const std::string& one : AllCandidates(commands, *command, option, typed)) {
    if (one.starts_with(":")) return {one};
    if (one.starts_with(typed)) candidates.push_back(one.substr(kept));
  }
  return candidates;
}

}  // namespace slipstream
