#ifndef SLIPSTREAM_SERVER_CORE_SHARD_WAITING_CALLS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_WAITING_CALLS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/ids.h"
#include "common/policy/policy.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// The reader that pulls: a member in one incarnation, or nothing for any other reader. So a worker
/// that registers again does not wait for the calls of its older incarnation.
using Reader = std::optional<std::pair<WorkerId, Incarnation>>;

Reader ReaderOf(const PullRequest& request);

/// A call that is to be answered, now or later.
struct PendingCall {
  CallId call{};

  /// The state of the model that a reader asks for; absent for the newest one.
  std::optional<Stamp> exact;

  /// The call waits until the slowest member in the pace has reached the condition's clock, and
  /// then until its version, and all that was decided by then, is published. A clock of 0 means
  /// that no member is waited for.
  PullCondition condition;

  std::optional<PushReply> push;  // Set for a push: its reply.
  bool wants_weights = false;     // Set for a pull and for an exchange.
  std::optional<Version> held;    // The version whose values the caller has already.
  /// A worker that will push a gradient computed from the answer.
  struct Trainer {
    WorkerId worker{};
    Incarnation incarnation{};
    uint32_t slot = 0;  // The slot of that gradient.

    /// The place of its push among the parts of this one; 0 if this one has none.
    uint32_t part = 0;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.worker, self.incarnation, self.slot, self.part);
    }
  };
  // Where work comes in rounds, the answer names the work of each. There are several only if the
  // call is a push that combines those of several workers, of which there are `parts`.
  absl::InlinedVector<Trainer, 1> trainers;
  uint32_t parts = 0;
  bool is_pull = false;  // Only the answer to a pull pins a version.

  /// Whether its worker goes on to a gradient with the answer. It then waits for readers, too.
  bool goes_on = false;
  uint64_t awaited_reader = 0;  // As PullRequest::reader.
  Reader reader;                // The reader whose pull it is.

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.call, self.exact, self.condition, self.push, self.wants_weights, self.held,
            self.trainers, self.parts, self.is_pull, self.goes_on, self.awaited_reader,
            self.reader);
  }
};

/// The calls that wait, by age. Invariant: no two have the same name.
///
/// They are also filed by their conditions, so that an event need not look at those that it cannot
/// concern.
///
/// Not thread-safe: one owner.
class WaitingCalls {
 public:
  /// Returns all calls, by age.
  std::vector<PendingCall> all() const;
  size_t size() const { return calls_.size(); }
  void Add(PendingCall call);

  template <typename Predicate>
  bool Any(Predicate predicate) const {
    return std::ranges::any_of(calls_, [&](const auto& entry) { return predicate(entry.second); });
  }

  /// Returns whether the call was waiting.
  bool Cancel(CallId call);

  /// The number of pulls among them: those of one reader, or all.
  size_t Pulls(const Reader& reader) const;
  size_t Pulls() const;

  /// The conditions that are met: all versions up to `version`, and all clocks up to `slowest`.
  struct Reached {
    Version version{};
    WorkerClock slowest{};
  };

  /// Takes out the calls that `answers(call)` has answered, which is asked for one after another,
  /// by age. It may change a call's condition. Calls whose conditions are not reached are left
  /// alone.
  template <typename Answers>
  void Serve(const Reached& reached, Answers answers) {
    for (const Age age : AgesWithin(reached)) {
      const auto place = calls_.find(age);
      PendingCall& call = place->second;
      Unfile(age, call);
      if (answers(call)) {
        calls_.erase(place);
      } else {
        File(age, call);
      }
    }
  }

  /// Notes that the process has ended, and all calls with it.
  void EndProcess() { *this = {}; }

  /// Names what is wrong with calls that were read from a file; empty if nothing is.
  std::string Fault() const;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    std::vector<PendingCall> calls = self.all();
    archive(calls);
    if constexpr (!std::is_const_v<Self>) {
      self = WaitingCalls();
      for (PendingCall& call : calls) self.Add(std::move(call));
    }
  }

  /// For tests: ends the process if an invariant does not hold.
  void CheckInvariants() const;

 private:
  using Age = uint64_t;

  /// Returns the ages of the calls whose conditions are reached, ascending.
  std::vector<Age> AgesWithin(const Reached& reached) const;

  void File(Age age, const PendingCall& call);
  void Unfile(Age age, const PendingCall& call);

  std::map<Age, PendingCall> calls_;
  Age next_age_ = 0;

  // The same calls: each that waits for a clock by that, any other by its version. A state that was
  // asked for has no version yet, or may be gone: its call is filed under version 0.
  std::set<std::pair<WorkerClock, Age>> by_clock_;
  std::set<std::pair<Version, Age>> by_version_;

  // The number of pulls of each reader. Invariant: none is 0.
  std::map<Reader, size_t> pulls_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_WAITING_CALLS_H_
