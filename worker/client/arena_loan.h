#ifndef SLIPSTREAM_WORKER_CLIENT_ARENA_LOAN_H_
#define SLIPSTREAM_WORKER_CLIENT_ARENA_LOAN_H_

#include <chrono>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace slipstream {

/// Counts what gRPC still holds of an arena that it was lent, so that nobody writes to it too soon.
///
/// Thread-safe: guarded by a mutex; pieces are returned on gRPC's threads.
class ArenaLoan {
 public:
  /// To be kept by whoever uses a piece of the arena; the piece is returned when it is destroyed.
  /// `owner` keeps a piece alive that lies elsewhere, and is let go of before that.
  std::shared_ptr<const void> Lend(std::shared_ptr<const void> owner = nullptr) {
    MutexLock lock(pieces_->mutex);
    ++pieces_->lent;
    return {this, [pieces = pieces_, owner = std::move(owner)](const void*) mutable {
              owner.reset();
              TakeBack(*pieces);
            }};
  }

  /// True once every piece is back; the arena may be written then. Waits for that for `timeout`.
  bool AwaitReturn(absl::Duration timeout) {
    const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
    MutexLock lock(pieces_->mutex);
    while (pieces_->lent > 0) {
      if (!pieces_->returned.WaitUntil(pieces_->mutex, deadline)) break;
    }
    return pieces_->lent == 0;
  }

 private:
  struct Pieces {
    Mutex mutex;
    CondVar returned;
    int lent ABSL_GUARDED_BY(mutex) = 0;
  };

  static void TakeBack(Pieces& pieces) {
    MutexLock lock(pieces.mutex);
    if (--pieces.lent == 0) pieces.returned.NotifyAll();
  }

  // Owned by the loan and by each piece, since a piece may come back after the loan is gone.
  std::shared_ptr<Pieces> pieces_ = std::make_shared<Pieces>();
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_ARENA_LOAN_H_
