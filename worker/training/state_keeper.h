#ifndef SLIPSTREAM_WORKER_TRAINING_STATE_KEEPER_H_
#define SLIPSTREAM_WORKER_TRAINING_STATE_KEEPER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/parameter_client.h"
#include "worker/training/local_steps.h"
#include "worker/training/state_file.h"

namespace slipstream {

/// Saves what a worker carries from push to push, and takes up what an earlier process of the
/// worker has saved: the errors of the codec (push_encoder.h), the worker's own weights if its
/// algorithm keeps them, and the state of the optimizer's rule if the worker takes steps itself.
///
/// The state is copied between two pushes, when the shards have answered all that were begun, so it
/// is that after the last of them. A thread of its own writes the copy, so training does not wait
/// for the disk. If the disk takes longer than an interval, saves become rarer.
///
/// Nothing that the servers count depends on the file. A process that is started again is a new
/// incarnation with sequences of its own, whether it has a state or not.
///
/// Not thread-safe: one owner, that of client and local steps.
class StateKeeper {
 public:
  struct Options {
    /// The directory for the state of all workers.
    std::string directory;

    /// The least time from one save to the next.
    absl::Duration interval;
    Identity identity;
    StateOwner owner;
  };

  /// `local` is null if the worker takes no steps of its own. Client and local steps must outlive
  /// this object.
  StateKeeper(const Options& options, ParameterClient& client, LocalSteps* local);

  /// Waits until what Save has copied is written.
  ~StateKeeper();
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

  /// Puts the saved state in the place of that which the worker begins with, and logs of which step
  /// it is. If there is none, or it is damaged or another's, logs that and changes nothing. Call
  /// before the first step.
  void Restore();

  /// Whether an interval has passed since the last copy, that copy is written, and the state is
  /// complete.
  bool is_due() const;

  /// Copies the state after so many steps of this process, and has it written. A failure is logged;
  /// the file is then the one before. REQUIRES: is_due(); nothing of the client is under way (see
  /// ParameterClient::Drain), and the local steps have undone what had no effect.
  void Save(uint64_t steps);

 private:
  struct Array {
    std::string name;
    std::span<float> values;
  };

  /// Returns where the state lies now. REQUIRES: nothing of the client is under way.
  std::vector<Array> Arrays() const;

  void Run();
  absl::Status Write(const StateMoment& moment) const;

  /// Logs the result of a write if it is another kind than that of the one before.
  void Tell(const StateMoment& moment, const absl::Status& written);

  // Constant after construction.
  const Options options_;
  const std::string path_;
  ParameterClient& client_;
  LocalSteps* const local_;
  TensorLayout layout_;

  uint64_t steps_before_ = 0;  // The number of steps of earlier processes.

  mutable Mutex mutex_;
  CondVar changed_;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time begun_ ABSL_GUARDED_BY(mutex_);  // When the last copy was begun.

  /// The moment of the copy in values_ that is to be written; nothing while no copy is.
  std::optional<StateMoment> copied_ ABSL_GUARDED_BY(mutex_);

  std::vector<float> values_;  // The thread's while copied_ is set, else the owner's.

  // Owned by the thread.
  std::optional<bool> has_written_;  // The result of the last write.

  std::thread thread_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_STATE_KEEPER_H_
