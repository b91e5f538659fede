#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_COORDINATOR_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_COORDINATOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deploy/lab/event_queue.h"
#include "proto/coordinator.pb.h"
#include "server/control_plane/parked_calls.h"
#include "server/core/coordinator/coordinator.h"
#include "tests/simulation/history.h"
#include "tests/simulation/network.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_journal.h"
#include "tests/simulation/trace.h"

namespace slipstream {

/// The shell around a production Coordinator in virtual time. Requests and answers pass as bytes.
/// The process may be killed, and another one then goes on from the journal.
///
/// Not thread-safe: one owner. All arguments must outlive it.
class SimCoordinator {
 public:
  SimCoordinator(uint64_t run, const Scenario& scenario, EventQueue& queue, History& history,
                 Trace& trace);

  void OnCall(Method method, const std::string& request, const Respond& respond);

  /// Ends the process. All of its connections break.
  void Kill();

  /// Starts another process. REQUIRES: the last one was killed.
  void Return();

  /// Returns the phase with which the coordinator would come back.
  Phase phase_kept() const;
  bool is_writing() const { return journal_.is_writing(); }

  /// The coordinator of the process that runs or ran last.
  const Coordinator& core() const { return *coordinator_; }

 private:
  using Calls = ParkedCalls<Respond, absl::StatusOr<std::string>>;
  using Question = Calls::Question;

  /// Ticks until the process is killed. `process` counts the processes.
  void Tick(uint64_t process);

  /// Makes the next change of the scenario if it is time.
  void Change();
  void Settle();

  /// Has the coordinator's state written if it has changed.
  void NoteChanges();

  /// Adds the event to the history once it cannot be lost any more.
  template <typename E>
  void Show(E event) {
    NoteChanges();
    journal_.Leave([this, event = std::move(event)] { history_.Add(event); });
  }
  void Answer(const Respond& respond, const absl::StatusOr<std::string>& answer);
  void ServeOrPark(const absl::Status& event, uint32_t wait_ms, Question question,
                   const Respond& respond);
  void Note(const absl::Status& status, const Identity& worker, WorkerHeard::What what);

  /// Takes a member's request.
  template <typename Request>
  Request TakeAs(const std::string& bytes, absl::Status& event);

  /// Serves a member's call that may have to wait.
  template <typename Request, typename Reply>
  void ServeMember(const std::string& bytes, const Respond& respond);

  template <typename Reply, typename Request>
  Question QuestionOf(const Request& request);
  void ServeAtOnce(const absl::Status& event, const google::protobuf::Message& reply,
                   const Respond& respond);
  void SyncServer(const std::string& bytes, const Respond& respond);

  /// A shard's report shows which workers have pushed, and so live.
  void NotePushers(const ServerReport& report);
  void Register(const std::string& bytes, const Respond& respond);
  void FinishInitialization(const std::string& bytes, const Respond& respond);
  void Heartbeat(const std::string& bytes, const Respond& respond);
  void Report(const std::string& bytes, const Respond& respond);
  void Leave(const std::string& bytes, const Respond& respond);
  void Follow(const std::string& bytes, const Respond& respond);

  const uint64_t run_;
  const Scenario& scenario_;
  EventQueue& queue_;
  History& history_;
  Trace& trace_;
  std::optional<Coordinator> coordinator_;
  SimJournal journal_;
  bool is_dead_ = false;
  absl::Time killed_;
  uint64_t process_ = 0;
  size_t changes_made_ = 0;
  std::optional<absl::Time> training_began_;  // Set at the first tick of training.
  Calls parked_;
  ViewNumber view_noted_{};
  bool awaited_servers_ = false;  // When that was noted.
  bool end_is_noted_ = false;
  Phase phase_noted_ = Phase::kWaitingForServers;
  std::map<Incarnation, WorkerClock> clocks_;  // With the newest push that a shard has reported.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_COORDINATOR_H_
