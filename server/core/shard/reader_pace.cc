#include "server/core/shard/reader_pace.h"

#include <algorithm>

namespace slipstream {

void ReaderPace::Adopt(const LagLimits& limits, Version published) {
  std::erase_if(places_, [&limits](const auto& place) { return !limits.contains(place.first); });
  for (const auto& [reader, lag_max] : limits) {
    Place& place = places_.try_emplace(reader, Place{.held = published}).first->second;
    place.lag_max = std::max<uint64_t>(lag_max, 1);
  }
}

void ReaderPace::OnSent(uint64_t reader, Version version) {
  const auto place = places_.find(reader);
  if (place != places_.end()) place->second.held = std::max(place->second.held, version);
}

bool ReaderPace::HoldsBack(Version decided) const {
  return std::ranges::any_of(places_, [decided](const auto& entry) {
    const Place& place = entry.second;
    return Value(decided) >= Value(place.held) &&
           Value(decided) - Value(place.held) >= place.lag_max;
  });
}

}  // namespace slipstream
