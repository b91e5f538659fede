#ifndef SLIPSTREAM_WORKER_COMPUTE_WEIGHTS_GATE_H_
#define SLIPSTREAM_WORKER_COMPUTE_WEIGHTS_GATE_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/layout/tensor_layout.h"

namespace slipstream {

/// Keeps track of which weights of a plan have arrived, and lets a step wait, layer by layer, for
/// those that it reads.
///
/// The first four methods are those of the plan (plan.h specifies them); the computing thread calls
/// the others.
///
/// Thread-safe: guarded by its own mutex. One step at a time.
class WeightsGate {
 public:
  /// Starts with all weights present.
  explicit WeightsGate(size_t parameters) : parameters_(parameters) {}

  void Expect();
  void Arrived(ParameterRange range);
  void Revoke(ParameterRange range);
  void Abandon();

  /// Notes that a step begins to read weights.
  void Enter();

  /// Notes that the step reads no more weights. Returns false if weights that it may have read were
  /// revoked.
  bool Leave();

  /// True if Await would return true at once. REQUIRES: between Enter and Leave.
  bool Has(ParameterRange range) const;

  /// Waits until the range has arrived; false if the step must end. REQUIRES: between Enter and
  /// Leave.
  bool Await(ParameterRange range);

  /// How long the step has waited since Enter.
  absl::Duration waited() const;

 private:
  void Erase(ParameterRange range) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsMissing(ParameterRange range) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const size_t parameters_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<size_t, size_t> missing_ ABSL_GUARDED_BY(mutex_);  // Begin → end; disjoint.
  bool is_read_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t steps_ ABSL_GUARDED_BY(mutex_) = 0;  // The number of steps that have entered.
  bool is_revoked_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration waited_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_WEIGHTS_GATE_H_
