#ifndef SLIPSTREAM_SERVER_DATA_PLANE_WAITING_CALL_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_WAITING_CALL_H_

#include <bit>
#include <utility>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "server/data_plane/shard.h"

namespace slipstream {

/// A call whose answer may come later, from another thread.
class WaitingCall {
 public:
  virtual ~WaitingCall() = default;

  /// The name of a call is its address: it is answered or cancelled before it is destroyed.
  CallId name() { return std::bit_cast<CallId>(this); }
  static WaitingCall* Of(CallId name) { return std::bit_cast<WaitingCall*>(name); }

  /// Called once for each Pull, FinishPush and Refuse that returns nothing, with no lock held,
  /// unless Cancel returns true before. It may be called on the thread that is still inside that
  /// function, before it has returned.
  virtual void OnAnswer(Answer answer) = 0;

  /// Called while an answer is sent, with the engine's lock held: the version cannot be kept any
  /// longer, and the call has to end. Only the pulls of readers who are not members lag.
  virtual void OnLagged(const absl::Status& status) = 0;
};

/// Gives each call its answer. No lock may be held.
inline void Give(Answers answers) {
  for (Answer& answer : answers) {
    WaitingCall* const call = WaitingCall::Of(answer.call);
    call->OnAnswer(std::move(answer));
  }
}

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_WAITING_CALL_H_
