#ifndef SLIPSTREAM_SERVER_LISTEN_AUDIT_LOG_H_
#define SLIPSTREAM_SERVER_LISTEN_AUDIT_LOG_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/allowance.h"
#include "common/base/mutex.h"
#include "common/process/steady_time.h"

namespace slipstream {

/// Logs who was let in, was refused, or changed something. Each event is one line of the log that
/// begins with the word "audit" and has the same fields:
///
///   audit event=joined identity=slipstream://run/mnist/worker/3 peer=192.0.2.7:41234
///   method=/slipstream.v1.Coordinator/Register reason="as worker 3"
///
/// Peers decide how often they are refused, so the number of lines is bounded: kLinesAtOnce, and
/// kLinesPerSecond after that, for refusals and as many for all other events. When lines may be
/// written again, one says how many of their kind were left out. Texts are cut and have no
/// quotation marks, so that no peer can forge a line.
///
/// Thread-safe: guarded by its own mutex.
class AuditLog {
 public:
  static constexpr double kLinesAtOnce = 100;
  static constexpr double kLinesPerSecond = 2;

  struct Event {
    std::string event;         // "joined", "refused", "left".
    std::string identity;      // The certificate's URI, "token", or "-" for none.
    std::string peer = "-";    // The peer's address.
    std::string method = "-";  // Set if it tells more than the event.
    std::string reason;
  };

  explicit AuditLog(std::function<absl::Time()> now = SteadyNow) : now_(std::move(now)) {}

  void Note(const Event& event);

  /// How many calls were refused, whether a line says so or not.
  uint64_t refusals() const { return refusals_; }

 private:
  const std::function<absl::Time()> now_;

  std::atomic<uint64_t> refusals_ = 0;
  Mutex mutex_;
  Allowance of_refusals_ ABSL_GUARDED_BY(mutex_){kLinesAtOnce, kLinesPerSecond};
  Allowance of_others_ ABSL_GUARDED_BY(mutex_){kLinesAtOnce, kLinesPerSecond};
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_AUDIT_LOG_H_
