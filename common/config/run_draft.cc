#include "common/config/run_draft.h"

namespace slipstream {

Origin RunDraft::OriginOf(std::string_view path) const {
  const auto found = given.find(path);
  return found == given.end() ? Origin::kDefault : found->second.origin;
}

bool RunDraft::Changes(std::string_view path) const {
  const auto found = given.find(path);
  return found != given.end() && found->second.changes;
}

bool RunDraft::IsUsable(std::string_view path) const {
  if (const auto found = given.find(path); found != given.end()) return found->second.is_valid;
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    if (unreadable_sections.contains(path.substr(0, dot))) return false;
  }
  return true;
}

Source RunDraft::KeySource(std::string_view path) const {
  if (const auto found = given.find(path); found != given.end()) return found->second.key;
  while (path.find('.') != std::string_view::npos) {
    path = path.substr(0, path.rfind('.'));
    if (const auto section = sections.find(path); section != sections.end()) {
      return section->second;
    }
  }
  return start;
}

Source RunDraft::ItemSource(std::string_view path, size_t item) const {
  const auto found = given.find(path);
  if (found == given.end() || item >= found->second.items.size()) return KeySource(path);
  return found->second.items[item];
}

}  // namespace slipstream
