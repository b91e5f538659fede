#ifndef SLIPSTREAM_WORKER_ALLREDUCE_COLLECTIVE_H_
#define SLIPSTREAM_WORKER_ALLREDUCE_COLLECTIVE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gloo {
class Context;
}  // namespace gloo

namespace slipstream {

/// How ranks that are to be connected learn of each other.
class MeetingPlace {
 public:
  virtual ~MeetingPlace() = default;

  /// Leaves the bytes by which others reach this rank.
  virtual absl::Status Leave(const std::string& contact) = 0;

  /// Waits for the bytes that another rank leaves, and returns them.
  virtual absl::StatusOr<std::string> Await(uint32_t rank) = 0;
};

/// A fixed number of processes, the ranks, that add up arrays over TCP, with Gloo. Each call is
/// made by all ranks, in the same order and with as many values. Its result has the same bits on
/// all.
///
/// Nothing is encrypted, and peers are not asked who they are.
///
/// Once a call has failed, every later one fails too, on all ranks: they cannot agree on where to
/// go on.
///
/// Not thread-safe: one owner, but any thread may abort.
class Collective {
 public:
  struct Options {
    uint32_t rank = 0;
    uint32_t ranks = 1;

    /// The IP address of this machine by which the other ranks reach it.
    std::string address = "127.0.0.1";

    /// How long a connection to another rank may take once both have left their contacts. Nothing
    /// interrupts that wait.
    absl::Duration connect_timeout = absl::Seconds(30);

    /// How long one call may take, with the wait for the slowest rank. The run's leases find a dead
    /// rank much sooner.
    absl::Duration call_timeout = absl::Hours(1);
  };

  /// Connects this rank with all others. Fails with UNAVAILABLE, and names the address, if that
  /// does not work out. `place` is used until this returns. The process ignores SIGPIPE from then
  /// on.
  static absl::StatusOr<std::unique_ptr<Collective>> Connect(const Options& options,
                                                             MeetingPlace& place);

  ~Collective();
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  /// Replaces each value by the sum of those of all ranks at its place, added in the order of a
  /// ring. UNAVAILABLE if a rank is lost. REQUIRES: there are values.
  absl::Status Sum(std::span<float> values);
  absl::Status Sum(std::span<double> values);

  /// Returns whether all ranks named the same number. If they did not, at least one rank hears
  /// that.
  absl::StatusOr<bool> IsSame(uint64_t number);

  /// Lets the call under way, here and on the other ranks, fail soon. Has no effect with one rank.
  void Abort();

  uint32_t rank() const { return options_.rank; }
  uint32_t ranks() const { return options_.ranks; }

 private:
  Collective(const Options& options, std::shared_ptr<gloo::Context> context);

  template <typename Value>
  absl::Status SumOf(std::span<Value> values);

  // Constant after construction.
  const Options options_;

  const std::shared_ptr<gloo::Context> context_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_ALLREDUCE_COLLECTIVE_H_
