#ifndef SLIPSTREAM_SERVER_CORE_SHARD_KEPT_VERSIONS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_KEPT_VERSIONS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// The facts about one version.
struct VersionRecord {
  /// The number of examples whose gradients are part of it.
  uint64_t examples = 0;

  /// As in WeightsHeader. Version 0 is the first state of every model, and has a stamp under every
  /// policy.
  std::optional<Stamp> stamp;
  uint64_t label = 0;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.examples, self.stamp, self.label);
  }
};

/// The versions of a shard's weights: which generation they are of, which is decided, which is
/// published, and what is known of those that are kept for readers.
///
/// Invariants: published <= decided, and both only rise, by one. The versions known are those after
/// `published` and, up to it, the newest ones that are to be kept, or as many as there are from the
/// oldest on whose values did not end with an earlier process.
///
/// Not thread-safe: one owner.
class KeptVersions {
 public:
  /// The generation of the shard to which all versions and sequences belong, and the version with
  /// which it began.
  Generation generation() const { return generation_; }
  Version generation_begin() const { return generation_begin_; }

  /// The version of the newest update ordered, and that of the newest update finished.
  Version decided() const { return decided_; }
  Version published() const { return published_; }

  /// The oldest version that is kept for readers.
  Version oldest() const { return Version{Value(decided_) + 1 - versions_.size()}; }

  /// Returns what is known of a version. REQUIRES: it is kept, or decided and not published.
  const VersionRecord& RecordOf(Version version) const {
    return versions_.at(Value(version) - Value(oldest()));
  }

  /// Returns what is known of version `decided()`.
  const VersionRecord& newest() const { return versions_.back(); }

  /// Returns the published version with this stamp; nothing if it is not kept.
  std::optional<Version> FindKept(const Stamp& stamp) const;

  /// Returns whether the published version is newer than this stamp, or its age is not known.
  bool IsPast(const Stamp& stamp) const;

  /// Adds the next version.
  void Decide(const VersionRecord& made);

  /// Notes that the next version is published. REQUIRES: it is decided.
  void Publish(Version version, uint32_t kept_max);

  /// Begins a later generation with the version decided last.
  void BeginGeneration(Generation generation);

  /// Notes that of all values only those from this version on have outlasted their process.
  /// REQUIRES: it is at most the published version.
  void EndProcess(Version oldest_kept);

  /// Names what contradicts itself in versions that were read from a file; empty if nothing does.
  std::string Fault() const;

  /// For tests: ends the process if an invariant does not hold.
  void CheckInvariants(uint32_t kept_max) const;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.generation_, self.generation_begin_, self.decided_, self.published_,
            self.versions_, self.kept_from_);
  }

 private:
  Generation generation_{};
  Version generation_begin_{};
  Version decided_{};
  Version published_{};
  std::deque<VersionRecord> versions_ = {VersionRecord{.stamp = Stamp{}}};

  /// The oldest version whose values did not end with an earlier process.
  Version kept_from_{};
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_KEPT_VERSIONS_H_
