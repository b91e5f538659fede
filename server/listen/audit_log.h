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
/// Peers decide how often they are turned away, so that lines have a bound: of refusals, and of all
/// else, kLinesAtOnce and kLinesPerSecond since. A line that may be written again says how many of
/// its kind were left out. Texts are cut, and have no quotation marks, so that no peer can write a
/// line of its own.
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
  /// The lines that may be written.
  struct Allowance {
    double left = kLinesAtOnce;
    absl::Time counted = absl::InfinitePast();
    uint64_t left_out = 0;
  };

  Mutex mutex_;
  Allowance of_refusals_ ABSL_GUARDED_BY(mutex_);
  Allowance of_others_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_AUDIT_LOG_H_
