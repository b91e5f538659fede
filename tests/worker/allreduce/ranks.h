#ifndef SLIPSTREAM_TESTS_WORKER_ALLREDUCE_RANKS_H_
#define SLIPSTREAM_TESTS_WORKER_ALLREDUCE_RANKS_H_

#include <gtest/gtest.h>

#include <barrier>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "worker/allreduce/collective.h"

namespace slipstream {

/// A meeting place in the memory of one process. No rank waits any longer once it is closed.
/// Thread-safe.
class LocalPlace {
 public:
  /// Returns the place as one rank sees it. It must not outlive this object.
  std::unique_ptr<MeetingPlace> Of(uint32_t rank) { return std::make_unique<Seen>(*this, rank); }

  void Close() {
    MutexLock lock(mutex_);
    is_closed_ = true;
    changed_.NotifyAll();
  }
  bool is_closed() const {
    MutexLock lock(mutex_);
    return is_closed_;
  }

 private:
  class Seen final : public MeetingPlace {
   public:
    Seen(LocalPlace& place, uint32_t rank) : place_(place), rank_(rank) {}

    absl::Status Leave(const std::string& contact) override {
      MutexLock lock(place_.mutex_);
      place_.contacts_[rank_] = contact;
      place_.changed_.NotifyAll();
      return absl::OkStatus();
    }

    absl::StatusOr<std::string> Await(uint32_t rank) override {
      MutexLock lock(place_.mutex_);
      while (!place_.contacts_.contains(rank)) {
        if (place_.is_closed_) return absl::UnavailableError("the meeting place is closed");
        place_.changed_.Wait(place_.mutex_);
      }
      return place_.contacts_[rank];
    }

   private:
    LocalPlace& place_;
    const uint32_t rank_;
  };

  mutable Mutex mutex_;
  CondVar changed_;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<uint32_t, std::string> contacts_ ABSL_GUARDED_BY(mutex_);
};

/// Connects so many ranks, each on a thread of its own, and runs `work` there. Returns what `work`
/// returned, by rank. A rank's end is that of its connections. If a rank cannot connect, that fails
/// the test, and no rank does any work, which might wait for that rank.
inline std::vector<absl::Status> RunRanks(uint32_t ranks,
                                          const std::function<absl::Status(Collective&)>& work) {
  LocalPlace place;
  std::vector<absl::Status> results(ranks);
  std::vector<std::thread> threads;
  std::barrier all_have_tried(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const std::unique_ptr<MeetingPlace> seen = place.Of(rank);
      auto collective = Collective::Connect({.rank = rank, .ranks = ranks}, *seen);
      EXPECT_TRUE(collective.ok()) << "rank " << rank << ": " << collective.status();
      if (!collective.ok()) place.Close();
      all_have_tried.arrive_and_wait();
      results[rank] = place.is_closed() ? collective.status() : work(**collective);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_ALLREDUCE_RANKS_H_
