#include "deploy/psctl/child_environment.h"

#include <string_view>

namespace slipstream {

std::map<std::string, std::string> EnvironmentMap(const char* const* block) {
  std::map<std::string, std::string> environment;
  for (; *block != nullptr; ++block) {
    const std::string_view entry = *block;
    const size_t equals = entry.find('=');
    if (equals == entry.npos) continue;
    environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

std::vector<std::string> ChildEnvironment(const char* const* block) {
  std::vector<std::string> inherited;
  for (; *block != nullptr; ++block) {
    if (!std::string_view(*block).starts_with("PS_")) inherited.emplace_back(*block);
  }
  return inherited;
}

}  // namespace slipstream
