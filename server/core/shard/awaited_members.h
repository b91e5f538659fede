#ifndef SLIPSTREAM_SERVER_CORE_SHARD_AWAITED_MEMBERS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_AWAITED_MEMBERS_H_

#include <set>
#include <utility>

#include "common/base/ids.h"
#include "server/core/shard/member_table.h"
#include "server/core/shard/round.h"

namespace slipstream {

/// The members that the open round waits for: those that owe it a gradient or an excuse and have
/// not been heard. It follows from the table of members and from the round, and is kept beside them
/// so that a push need not look at all members.
///
/// Not thread-safe: one owner.
class AwaitedMembers {
 public:
  /// `decided`: the version that the open round starts from.
  AwaitedMembers(const MemberTable& members, const Round& open, Version decided) {
    members.ForEach([&](WorkerId worker, const MemberRecord& member) {
      if (member.owes_from.has_value()) {
        Owe(worker, *member.owes_from, open.HasHeardFrom(worker), decided);
      }
    });
  }

  /// Notes that the member owes rounds something from this version on. `is_heard`: the open round
  /// has heard from it already. REQUIRES: it has owed nothing before.
  void Owe(WorkerId worker, Version from, bool is_heard, Version decided) {
    if (from > decided) {
      later_.emplace(from, worker);
    } else {
      (is_heard ? heard_ : awaited_).insert(worker);
    }
  }

  /// Notes that the worker has contributed to the open round, or was excused from it.
  void Hear(WorkerId worker) { heard_.insert(awaited_.extract(worker)); }

  /// Notes that a round starts from version `decided`.
  void BeginRound(Version decided) {
    awaited_.merge(heard_);
    while (!later_.empty() && later_.begin()->first <= decided) {
      awaited_.insert(later_.extract(later_.begin()).value().second);
    }
  }

  const std::set<WorkerId>& all() const { return awaited_; }

  friend bool operator==(const AwaitedMembers&, const AwaitedMembers&) = default;

 private:
  std::set<WorkerId> awaited_;
  std::set<WorkerId> heard_;                      // They owe the round, and have been heard.
  std::set<std::pair<Version, WorkerId>> later_;  // By the version from which on they owe.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_AWAITED_MEMBERS_H_
