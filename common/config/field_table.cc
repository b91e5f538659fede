#include "common/config/field_table.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/config/run_fields.h"

namespace slipstream {
namespace {

/// Returns `name` if `path` is `section.name` or lies below it.
std::optional<std::string> ChildOf(std::string_view section, std::string_view path) {
  if (!section.empty()) {
    if (!path.starts_with(section) || path.size() <= section.size() ||
        path[section.size()] != '.') {
      return std::nullopt;
    }
    path.remove_prefix(section.size() + 1);
  }
  return std::string(path.substr(0, path.find('.')));
}

}  // namespace

std::string Field::EnvironmentName() const {
  std::string result = "PS_";
  for (char c : path) {
    result += c == '.' ? '_' : (c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  }
  return result;
}

std::string Field::name() const { return path.substr(path.rfind('.') + 1); }

bool Field::Applies(const RunSpec& spec) const {
  if (!condition) return true;
  const Field* decider = FindField(condition->path);
  PS_CHECK(decider != nullptr);
  if (!decider->Applies(spec)) return false;
  const FieldValue value = decider->get(spec);
  const auto& choice = std::get<std::string>(std::get<ScalarValue>(value));
  return std::ranges::count(condition->choices, choice) > 0;
}

const std::vector<Field>& Fields() {
  static const auto& table = *new std::vector<Field>(RunFields());
  return table;
}

const Field* FindField(std::string_view path) {
  const auto found = std::ranges::find(Fields(), path, &Field::path);
  return found == Fields().end() ? nullptr : &*found;
}

std::string FlagError(std::string_view path, const std::string& text) {
  const Field* field = FindField(path);
  PS_CHECK(field != nullptr);
  return ScalarError(std::get<ScalarType>(field->type), text);
}

bool IsSection(std::string_view path) { return !path.empty() && !KeysOf(path).empty(); }

std::vector<std::string> KeysOf(std::string_view section) {
  std::vector<std::string> keys;
  for (const Field& field : Fields()) {
    const std::optional<std::string> child = ChildOf(section, field.path);
    if (child && std::ranges::count(keys, *child) == 0) keys.push_back(*child);
  }
  return keys;
}

}  // namespace slipstream
