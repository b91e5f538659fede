#ifndef SLIPSTREAM_COMMON_CONFIG_SUGGESTION_H_
#define SLIPSTREAM_COMMON_CONFIG_SUGGESTION_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream {

/// Returns the candidate that `word` was most likely meant to be; nothing if none is near. Near
/// means at most one edit (insertion, deletion, substitution, swap of neighbours) for every three
/// letters; letter case is ignored. Among equally near candidates the first is returned; if none is
/// near, the first that begins with `word`.
std::optional<std::string> Nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

/// Returns `; did you mean "…"?` for the nearest candidate, or an empty text.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_SUGGESTION_H_
