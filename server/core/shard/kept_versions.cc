#include "server/core/shard/kept_versions.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"

namespace slipstream {

std::optional<Version> KeptVersions::FindKept(const Stamp& stamp) const {
  // The newest first: a publisher whose clock stood still would have given its stamp twice.
  for (uint64_t version = Value(published_) + 1; version-- > Value(oldest());) {
    if (RecordOf(Version{version}).stamp == stamp) return Version{version};
  }
  return std::nullopt;
}

bool KeptVersions::IsPast(const Stamp& stamp) const {
  const std::optional<Stamp>& newest = RecordOf(published_).stamp;
  return !newest.has_value() || *newest > stamp;
}

void KeptVersions::Decide(const VersionRecord& made) {
  versions_.push_back(made);
  decided_ = Next(decided_);
}

void KeptVersions::Publish(Version version, uint32_t kept_max) {
  PS_CHECK(version == Next(published_) && version <= decided_);
  published_ = version;
  if (Value(version) - Value(oldest()) >= kept_max) versions_.pop_front();
}

void KeptVersions::BeginGeneration(Generation generation) {
  PS_CHECK(generation > generation_);
  generation_ = generation;
  generation_begin_ = decided_;
  published_ = decided_;
}

void KeptVersions::EndProcess(Version oldest_kept) {
  while (versions_.size() > Value(decided_) + 1 - Value(oldest_kept)) versions_.pop_front();
  kept_from_ = std::max(kept_from_, oldest_kept);
}

std::string KeptVersions::Fault() const {
  const uint64_t decided = Value(decided_);
  const uint64_t published = Value(published_);
  if (published > decided) return fmt::format("version {} is beyond {}", published, decided);
  // Each version from the newest published one on is needed.
  const uint64_t kept = versions_.size();
  if (kept > decided + 1 || kept < decided - published + 1) {
    return fmt::format("it describes {} versions up to {}, and {} is published", kept, decided,
                       published);
  }
  return "";
}

void KeptVersions::CheckInvariants(uint32_t kept_max) const {
  PS_CHECK(published_ <= decided_);
  PS_CHECK(generation_begin_ <= kept_from_ && kept_from_ <= published_);
  const uint64_t kept = std::min<uint64_t>(kept_max, Value(published_) - Value(kept_from_) + 1);
  PS_CHECK(Value(published_) - Value(oldest()) + 1 == kept);
}

}  // namespace slipstream
