#ifndef SLIPSTREAM_WORKER_CLIENT_ARENA_LOAN_H_
#define SLIPSTREAM_WORKER_CLIENT_ARENA_LOAN_H_

#include <chrono>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace slipstream {

/// Counts the pieces of an arena that gRPC still holds, so that nobody overwrites them too soon.
///
/// Thread-safe: guarded by a mutex; pieces are returned on gRPC's threads.
class ArenaLoan {
 public:
  /// Lends a piece of the arena: whoever uses the piece keeps the result, whose destruction returns
  /// the piece. If the bytes lie outside the arena, `owner` keeps them alive; it is released just
  /// before the piece is returned.
  std::shared_ptr<const void> Lend(std::shared_ptr<const void> owner = nullptr) {
    MutexLock lock(pieces_->mutex);
    ++pieces_->lent;
    return {this, [pieces = pieces_, owner = std::move(owner)](const void*) mutable {
              owner.reset();
              TakeBack(*pieces);
            }};
  }

  /// Waits until every piece is back, for at most `timeout`. Returns true if all are back: then the
  /// arena may be written.
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
