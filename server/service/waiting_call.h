#ifndef SLIPSTREAM_SERVER_SERVICE_WAITING_CALL_H_
#define SLIPSTREAM_SERVER_SERVICE_WAITING_CALL_H_

#include "absl/status/status.h"
#include "server/service/shard.h"

namespace slipstream {

/// A call whose answer may come later, from another thread.
class WaitingCall {
 public:
  virtual ~WaitingCall() = default;

  /// Called at most once, with no lock held, and never after Cancel returned true. It may be called
  /// on the thread that is still inside Pull or FinishPush, before that function has returned
  /// nothing.
  virtual void OnAnswer(Answer answer) = 0;

  /// Called in place of OnAnswer: the call has to end with this status. No shard does so to a push.
  virtual void OnRefused(const absl::Status& status) = 0;

  /// Called while an answer is sent, with the engine's lock held: the version cannot be kept any
  /// longer, and the call has to end. Only the pulls of readers who are not members lag.
  virtual void OnLagged(const absl::Status& status) = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_WAITING_CALL_H_
