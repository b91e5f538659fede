#ifndef SLIPSTREAM_COMMON_CONFIG_SUGGESTION_H_
#define SLIPSTREAM_COMMON_CONFIG_SUGGESTION_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream {

/// The candidate that `word` was most likely meant to be; nothing if none is near. Near is at most
/// one edit (insertion, deletion, substitution, swap of neighbours) for every three letters, and
/// letter case is free. Of equally near ones the first; failing that, the first that goes on where
/// `word` ends.
std::optional<std::string> Nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

/// `; did you mean "…"?` for the nearest candidate, or nothing.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_SUGGESTION_H_
