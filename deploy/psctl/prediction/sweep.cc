#include "deploy/psctl/prediction/sweep.h"

#include <charconv>
#include <set>

#include "common/base/limits.h"

namespace slipstream {
namespace {

constexpr std::string_view kKey = "workers=";

std::optional<uint32_t> ParseWorkers(std::string_view text) {
  uint32_t workers = 0;
  const char* const end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data(), end, workers);
  if (error != std::errc() || read_to != end) return std::nullopt;
  if (workers < 1 || workers > kWorkersMax) return std::nullopt;
  return workers;
}

}  // namespace

std::optional<std::vector<uint32_t>> ParseSweep(std::string_view text) {
  if (!text.starts_with(kKey)) return std::nullopt;
  text.remove_prefix(kKey.size());
  std::set<uint32_t> numbers;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const size_t dots = item.find("..");
    const auto first = ParseWorkers(item.substr(0, dots));
    const auto last = dots == item.npos ? first : ParseWorkers(item.substr(dots + 2));
    if (!first || !last || *first > *last) return std::nullopt;
    for (uint64_t number = *first; number < *last; number *= 2) {
      numbers.insert(static_cast<uint32_t>(number));
    }
    numbers.insert(*last);
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  return std::vector<uint32_t>(numbers.begin(), numbers.end());
}

}  // namespace slipstream
