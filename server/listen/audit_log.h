#ifndef SLIPSTREAM_SERVER_LISTEN_AUDIT_LOG_H_
#define SLIPSTREAM_SERVER_LISTEN_AUDIT_LOG_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/process/steady_time.h"

namespace slipstream {

/// Writes down who was let in, was turned away, or changed something: one line of the log each, of
/// which the first word is "audit", with the same fields:
///
///   audit event=joined identity=slipstream://run/mnist/worker/3 peer=192.0.2.7:41234
///   method=/slipstream.v1.Coordinator/Register reason="as worker 3"
///
/// Peers decide how often they are turned away, so that lines have a bound: kLinesAtOnce, and
/// kLinesPerSecond since. A line that may be written again says how many were left out.
///
/// Thread-safe: guarded by its own mutex.
class AuditLog {
 public:
  static constexpr double kLinesAtOnce = 100;
  static constexpr double kLinesPerSecond = 2;

  struct Event {
    std::string event;         // "joined", "refused", "left".
    std::string identity;      // The certificate's URI, "token", or "-" for none.
    std::string peer = "-";    // Where from.
    std::string method = "-";  // Where it tells more than the event.
    std::string reason;
  };

  explicit AuditLog(std::function<absl::Time()> now = SteadyNow) : now_(std::move(now)) {}

  void Note(const Event& event);

 private:
  const std::function<absl::Time()> now_;
  Mutex mutex_;
  double lines_left_ ABSL_GUARDED_BY(mutex_) = kLinesAtOnce;
  absl::Time counted_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_AUDIT_LOG_H_
