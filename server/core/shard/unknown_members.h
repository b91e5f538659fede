#ifndef SLIPSTREAM_SERVER_CORE_SHARD_UNKNOWN_MEMBERS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_UNKNOWN_MEMBERS_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "common/base/ids.h"

namespace slipstream {

/// Tells members whose view is still on its way to a shard from members that somebody has made up.
/// The coordinator knows a member before the member itself does. So if a question to the
/// coordinator was asked after the shard first heard of a real member, its answer brings the
/// member's view. If somebody else named the member's incarnation before, the member is refused
/// until that view comes, and tries again.
///
/// Not thread-safe: one owner, which serialises calls.
class UnknownMembers {
 public:
  /// How many unknown members are remembered. Beyond that the oldest incarnations are forgotten,
  /// and count as new if they are named again.
  static constexpr size_t kMost = 64;

  /// Note that the shard asks the coordinator for news, and that it has taken the answer. It asks
  /// again only after the last question was answered or failed. Return whether that matters: it
  /// does while an unknown member is remembered.
  bool OnAsked() {
    if (first_heard_.empty()) return false;
    ++asked_;
    return true;
  }
  bool OnAnswered() {
    if (first_heard_.empty()) return false;
    answered_ = asked_;
    return true;
  }

  /// Notes that a caller claims to be this member, which is newer than any known here. Returns true
  /// once the member is known to be made up.
  bool IsMadeUp(Incarnation incarnation) {
    const auto [seen, is_new] = first_heard_.try_emplace(incarnation, asked_);
    const bool is_made_up = answered_ > seen->second;
    if (first_heard_.size() > kMost) first_heard_.erase(first_heard_.begin());
    return is_made_up;
  }

  /// Forgets incarnations up to `newest`, which are known now.
  void OnKnown(Incarnation newest) {
    first_heard_.erase(first_heard_.begin(), first_heard_.upper_bound(newest));
  }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.asked_, self.answered_, self.first_heard_);
  }

 private:
  uint64_t asked_ = 0;
  uint64_t answered_ = 0;  // The last question that was answered.

  // By incarnation, the last question that was asked before the shard heard of it.
  std::map<Incarnation, uint64_t> first_heard_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_UNKNOWN_MEMBERS_H_
