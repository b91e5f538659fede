#ifndef SLIPSTREAM_SERVER_CORE_SHARD_WAITING_CALLS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_WAITING_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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
/// Not thread-safe: one owner.
class WaitingCalls {
 public:
  const std::vector<PendingCall>& all() const { return calls_; }
  size_t size() const { return calls_.size(); }
  void Add(PendingCall call) { calls_.push_back(std::move(call)); }

  /// Returns whether the call was waiting.
  bool Cancel(CallId call);

  /// The number of pulls among them: those of one reader, or all.
  size_t Pulls(const Reader& reader) const;
  size_t Pulls() const;

  /// Takes out the calls that `answers(call)` has answered, which is asked for one after another.
  template <typename Answers>
  void Serve(Answers answers) {
    size_t kept = 0;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (!answers(calls_[i]) && kept++ != i) calls_[kept - 1] = std::move(calls_[i]);
    }
    calls_.erase(calls_.begin() + static_cast<ptrdiff_t>(kept), calls_.end());
  }

  /// Notes that the process has ended, and all calls with it.
  void EndProcess() { calls_.clear(); }

  /// Names what is wrong with calls that were read from a file; empty if nothing is.
  std::string Fault() const;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.calls_);
  }

 private:
  std::vector<PendingCall> calls_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_WAITING_CALLS_H_
