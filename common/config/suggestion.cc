#include "common/config/suggestion.h"

#include <algorithm>

namespace slipstream {
namespace {

// Longer words are no typing mistakes, and the distance costs the product of the lengths.
constexpr size_t kWordMax = 64;

// Shorter beginnings fit too many words.
constexpr size_t kBeginningMin = 3;

std::string ToLower(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return lower;
}

/// Returns the optimal string alignment: Levenshtein's distance with swaps of neighbours.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) table[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) table[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> Nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kWordMax) return std::nullopt;
  const std::string lower = ToLower(word);
  std::optional<std::string> nearest;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(lower, ToLower(candidate));
    // A candidate that shares no letter is not near, even if both words are short.
    if (distance >= least || distance >= candidate.size()) continue;
    nearest = candidate;
    least = distance;
  }
  if (nearest || word.size() < kBeginningMin) return nearest;
  const auto continues = [&](const std::string& candidate) {
    return ToLower(candidate).starts_with(lower);
  };
  const auto longer = std::ranges::find_if(candidates, continues);
  return longer == candidates.end() ? std::nullopt : std::optional(*longer);
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::optional<std::string> nearest = Nearest(word, candidates);
  return nearest ? "; did you mean \"" + *nearest + "\"?" : "";
}

}  // namespace slipstream
