#ifndef SLIPSTREAM_SERVER_DATA_PLANE_TRANSFER_WATCH_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_TRANSFER_WATCH_H_

#include <grpc/grpc.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace slipstream {

/// Ends calls whose peer has begun to send or to read and has stalled: a push that trickles keeps
/// the memory that it was admitted with, and a reader that stops keeps a version. The connection's
/// own probes find peers that are gone; this class finds peers that still answer probes.
///
/// The ended call fails with UNAVAILABLE, because its peer may be honest behind a bad link. A call
/// may also be ended for a reason of its owner's.
///
/// Thread-safe: guarded by its own mutex. Must outlive its transfers.
class TransferWatch {
 public:
  struct Options {
    /// Within `window` at least `bytes_min` have to move, or all that is left. A message counts
    /// once it is complete, so the window has to be long enough for one message over the slowest
    /// link.
    absl::Duration window = absl::Minutes(1);
    uint64_t bytes_min = uint64_t{64} << 10;

    /// Returns whether others wait for what a transfer with a time limit holds. Called without a
    /// lock.
    std::function<bool()> others_wait = [] { return false; };

    std::function<absl::Time()> now = [] { return absl::Now(); };

    /// Returns the window for transfers whose progress may show only after so many bytes: half a
    /// minute, and the time that they take at 128 KiB/s. A slower link loses its connection to
    /// unanswered probes anyway.
    static absl::Duration WindowFor(size_t bytes);
  };

  explicit TransferWatch(const Options& options);
  ~TransferWatch();
  TransferWatch(const TransferWatch&) = delete;
  TransferWatch& operator=(const TransferWatch&) = delete;

  /// The transfer of one call, in either direction; a member of the call's object.
  class Transfer {
   public:
    /// `name` is for people, such as "push".
    Transfer(TransferWatch& watch, grpc_call* call, std::string name);
    ~Transfer();
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    /// Notes that the peer has just moved so many bytes, and has to go on.
    void Await(size_t moved);

    /// Lets the peer take its time until the next Await.
    void Rest();

    /// Lets the transfer take so long from now on, and longer while nobody else waits.
    void EndAfter(absl::Duration time);

    /// Has the watch end the transfer at once, with this status. May be called with a lock held.
    void End(const absl::Status& status);

   private:
    friend class TransferWatch;

    // Constant after construction.
    TransferWatch& watch_;
    grpc_call* const call_;
    const std::string name_;
    std::list<Transfer*>::iterator place_;

    // Guarded by the watch's mutex.
    bool is_awaited_ = false;
    uint64_t moved_ = 0;                      // Bytes within the window.
    std::optional<absl::Time> window_begin_;  // Set at the watch's next look.
    std::optional<absl::Time> ends_;          // When it ends if others wait.
    absl::Status ended_by_;                   // If it is not OK, the watch ends the transfer by it.
  };

 private:
  void Run();
  void EndStalled();
  bool IsStalled(Transfer& transfer, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Returns the status to end the transfer with; OK if it is not to end.
  absl::Status WhyEnded(Transfer& transfer, absl::Time now, bool others_wait)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;

  Mutex mutex_;
  CondVar woken_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_look_due_ ABSL_GUARDED_BY(mutex_) = false;  // Before the usual time.
  std::list<Transfer*> transfers_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_TRANSFER_WATCH_H_
