#ifndef SLIPSTREAM_WORKER_CLIENT_ARENA_LOAN_H_
#define SLIPSTREAM_WORKER_CLIENT_ARENA_LOAN_H_

#include <atomic>
#include <memory>

namespace slipstream {

/// Counts what gRPC still holds of an arena that it was lent, so that nobody writes to it too soon.
///
/// Thread-safe: pieces are returned on gRPC's threads.
class ArenaLoan {
 public:
  /// To be kept by whoever uses a piece of the arena; the piece is returned when it is destroyed.
  std::shared_ptr<const void> Lend() {
    pieces_->fetch_add(1, std::memory_order_relaxed);
    const auto take_back = [pieces = pieces_](const void*) {
      pieces->fetch_sub(1, std::memory_order_release);
    };
    return {this, take_back};
  }

  /// True once every piece is back; the arena may be written then.
  bool returned() const { return pieces_->load(std::memory_order_acquire) == 0; }

 private:
  // Owned by the loan and by each piece, since a piece may come back after the loan is gone.
  std::shared_ptr<std::atomic<int>> pieces_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_ARENA_LOAN_H_
