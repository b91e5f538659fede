#include "common/process/environment.h"

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

}  // namespace slipstream
