#include "deploy/psctl/child_environment.h"

#include <string_view>

namespace slipstream {

std::vector<std::string> ChildEnvironment(const char* const* block) {
  std::vector<std::string> inherited;
  for (; *block != nullptr; ++block) {
    if (!std::string_view(*block).starts_with("PS_")) inherited.emplace_back(*block);
  }
  return inherited;
}

}  // namespace slipstream
