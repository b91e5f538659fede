#ifndef SLIPSTREAM_SERVER_CORE_UNKNOWN_MEMBERS_H_
#define SLIPSTREAM_SERVER_CORE_UNKNOWN_MEMBERS_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "common/base/ids.h"

namespace slipstream {

/// Tells members whose view is on its way to a shard from those that somebody has made up. The
/// coordinator knows a member before the member knows itself, so an answer of it to a question that
/// was asked after the member itself was first heard of brings its view. Where somebody else named
/// its incarnation before, it is refused until that view comes, and tries again.
///
/// Not thread-safe: one owner, which serialises calls.
class UnknownMembers {
 public:
  /// More are forgotten, the oldest incarnations first, and then are taken for new ones again.
  static constexpr size_t kMost = 64;

  /// The shard asks the coordinator what is new; and was answered, and has taken that. One question
  /// follows the answer to another, or its failure.
  void OnAsked() { ++asked_; }
  void OnAnswered() { answered_ = asked_; }

  /// Somebody says that this is a member, which is newer than any known here. True once it is known
  /// to be made up.
  bool IsMadeUp(Incarnation incarnation) {
    const auto [seen, is_new] = first_heard_.try_emplace(incarnation, asked_);
    const bool is_made_up = answered_ > seen->second;
    if (first_heard_.size() > kMost) first_heard_.erase(first_heard_.begin());
    return is_made_up;
  }

  /// These are known.
  void OnKnown(Incarnation newest) {
    first_heard_.erase(first_heard_.begin(), first_heard_.upper_bound(newest));
  }

 private:
  uint64_t asked_ = 0;
  uint64_t answered_ = 0;  // The last question that was.

  // By incarnation, the last question asked before it was heard of.
  std::map<Incarnation, uint64_t> first_heard_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_UNKNOWN_MEMBERS_H_
