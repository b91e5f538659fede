#include "common/config/unexpected_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "common/config/field_table.h"

namespace slipstream {
namespace {

/// The parts of a flag such as `--batch-size=32`.
struct Flag {
  std::string key;  // For instance batch_size.
  std::string value;
};

/// Returns the parts of `word`. `next` is the word after it, which is the value if there is no '='.
Flag FlagOf(std::string_view word, std::string_view next) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  const size_t equals = word.find('=');
  Flag flag = {.key = std::string(word.substr(0, equals)), .value = std::string(next)};
  if (equals != std::string_view::npos) flag.value = word.substr(equals + 1);
  std::ranges::replace(flag.key, '-', '_');
  return flag;
}

/// Returns the paths of the keys with this name, which may include the section.
std::vector<std::string> KeysCalled(const std::string& name) {
  std::vector<std::string> keys;
  for (const Field& field : Fields()) {
    if (field.path == name || field.name() == name) keys.push_back(field.path);
  }
  return keys;
}

}  // namespace

std::string ExplainUnexpected(std::span<const std::string> unexpected,
                              std::span<const std::string> all, TakesSettings takes) {
  std::string text = fmt::format("unexpected argument{}: {}", unexpected.size() == 1 ? "" : "s",
                                 fmt::join(unexpected, " "));
  const auto is_flag = [](const std::string& word) { return word.starts_with('-'); };
  const auto first = std::ranges::find_if(unexpected, is_flag);
  if (first == unexpected.end()) return text;
  const auto place = std::ranges::find(all, *first);
  const bool has_value = place != all.end() && place + 1 != all.end() && !is_flag(*(place + 1));
  const Flag flag = FlagOf(*first, has_value ? std::string_view(*(place + 1)) : "VALUE");
  std::vector<std::string> meant;
  for (const std::string& key : KeysCalled(flag.key)) {
    meant.push_back(fmt::format("--set {}={}", key, flag.value));
  }
  if (meant.empty()) return text;
  const std::string settings = fmt::format("{}", fmt::join(meant, " or "));
  if (takes == TakesSettings::kThisProgram) return text + "; did you mean " + settings + "?";
  return text + "; it is a setting of the run: " + settings + " of ps_server or psctl run";
}

bool ReportParseError(const CLI::App& app, const CLI::ParseError& error, int argc,
                      const char* const* argv, TakesSettings takes) {
  const std::vector<std::string> unexpected = app.remaining(/*recurse=*/true);
  const bool may_be_typo = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                           dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (may_be_typo && !unexpected.empty()) {
    const std::vector<std::string> all(argv + 1, argv + argc);
    app.exit(CLI::ValidationError(ExplainUnexpected(unexpected, all, takes)));
    return false;
  }
  return app.exit(error) == 0;
}

}  // namespace slipstream
