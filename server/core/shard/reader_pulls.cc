#include "server/core/shard/reader_pulls.h"

#include <algorithm>
#include <iterator>

#include "common/base/check.h"

namespace slipstream {

bool ReaderPulls::HasPlaceFor(Version version, uint32_t pulls_max, uint32_t versions_kept) const {
  if (pulls_.size() >= pulls_max) return false;
  std::set<Version> read = VersionsRead();
  read.insert(version);
  return read.size() <= versions_kept + 1;
}

void ReaderPulls::End(CallId call) { PS_CHECK(pulls_.erase(call) == 1); }

std::set<Version> ReaderPulls::VersionsRead() const {
  std::set<Version> read;
  for (const auto& [_, pull] : pulls_) {
    if (!pull.has_lagged) read.insert(pull.version);
  }
  return read;
}

std::vector<CallId> ReaderPulls::NoteLagging(Version oldest_kept) {
  std::vector<CallId> lagged;
  const std::set<Version> read = VersionsRead();
  const auto not_kept = std::distance(read.begin(), read.lower_bound(oldest_kept));
  if (static_cast<size_t>(not_kept) <= kVersionsMax) return lagged;
  // One version at most was dropped since the last time, so one is too many.
  for (auto& [call, pull] : pulls_) {
    if (pull.has_lagged || pull.version != *read.begin()) continue;
    pull.has_lagged = true;
    lagged.push_back(call);
  }
  return lagged;
}

void ReaderPulls::CheckInvariants(Version oldest_kept, uint32_t pulls_max,
                                  uint32_t versions_kept) const {
  PS_CHECK(pulls_.size() <= pulls_max);
  const std::set<Version> read = VersionsRead();
  PS_CHECK(read.size() <= versions_kept + 1);
  PS_CHECK(std::distance(read.begin(), read.lower_bound(oldest_kept)) <=
           static_cast<ptrdiff_t>(kVersionsMax));
}

}  // namespace slipstream
