#ifndef SLIPSTREAM_SERVER_CONTROL_PLANE_COORDINATOR_SERVICE_H_
#define SLIPSTREAM_SERVER_CONTROL_PLANE_COORDINATOR_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/settings/run_change.h"
#include "common/settings/run_spec.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/control_plane/coordinator_call.h"
#include "server/control_plane/open_streams.h"
#include "server/control_plane/parked_calls.h"
#include "server/control_plane/question_stream.h"
#include "server/control_plane/status_watchers.h"
#include "server/core/coordinator/coordinator.h"
#include "server/listen/caller.h"
#include "server/listen/connections.h"
#include "server/listen/latest_calls.h"
#include "server/status/run_news.h"
#include "server/status/run_status.h"
#include "server/status/stalled_workers.h"
#include "server/status/version_skew.h"

namespace slipstream {

/// The methods of Coordinator through the callback API. GetStatus answers with bytes.
using CoordinatorMethods = v1::Coordinator::WithRawCallbackMethod_GetStatus<
    v1::Coordinator::WithCallbackMethod_SyncServer<v1::Coordinator::WithCallbackMethod_Register<
        v1::Coordinator::WithCallbackMethod_PrepareModel<
            v1::Coordinator::WithCallbackMethod_FinishInitialization<
                v1::Coordinator::WithCallbackMethod_Meet<
                    v1::Coordinator::WithCallbackMethod_Heartbeat<
                        v1::Coordinator::WithCallbackMethod_GetWork<
                            v1::Coordinator::WithCallbackMethod_Report<
                                v1::Coordinator::WithCallbackMethod_Leave<
                                    v1::Coordinator::WithCallbackMethod_EndTraining<
                                        v1::Coordinator::WithCallbackMethod_ChangeRun<
                                            v1::Coordinator::WithCallbackMethod_SaveCheckpoint<
                                                v1::Coordinator::WithCallbackMethod_Follow<
                                                    v1::Coordinator::WithCallbackMethod_WatchStatus<
                                                        v1::Coordinator::Service>>>>>>>>>>>>>>>;

/// Serves Coordinator over gRPC: decodes a message, asks the coordinator under the lock, and
/// answers after releasing it.
///
/// Heartbeats and questions for work come over streams that stay open: a new call costs several
/// times as much as a message. A call that has to wait is parked without a thread. After every
/// event the parked calls whose answer may have changed are asked again. A timer thread lets time
/// pass in the coordinator, and answers calls whose time is up with the state of that moment. A
/// parked call that its client cancels is dropped.
///
/// Thread-safe: guarded by its own mutexes; never blocks on I/O under them.
class CoordinatorService final : public CoordinatorMethods {
 public:
  /// The most open streams, more than two of every member. Further ones are refused with
  /// RESOURCE_EXHAUSTED.
  static constexpr size_t kStreamsMax = 20'000;

  struct Options {
    RunSpec spec;

    /// The random number that names this run.
    uint64_t run = 0;

    /// The settings in canonical form, as workers get them.
    std::string settings;

    /// Names the key in which another server's settings differ; empty if they do not.
    std::function<std::string(const std::string& theirs)> settings_difference;

    /// Reads a change, as `key=value`, of a run with these settings.
    std::function<absl::StatusOr<RunChange>(const RunSpec& run,
                                            const std::vector<std::string>& changes)>
        read_change;

    /// The clock, which must not go back.
    std::function<absl::Time()> now;

    /// The connections of the server that this is registered with. They must outlive it. Null if
    /// nothing bounds them.
    Connections* connections = nullptr;

    /// Writes Coordinator::Save() and the settings in force to the disk. If it fails it is called
    /// again, with a newer state. Null if nothing is kept.
    std::function<absl::Status(const std::string& state, const RunSpec& settings)> keep = nullptr;

    /// The state to go on from, and the settings in force then; empty for a new run.
    std::optional<std::pair<std::string, RunSpec>> kept = std::nullopt;

    /// Whether the run goes on although `kept` is older than what its servers know.
    bool accepts_rollback = false;

    /// How old the status may be that GetStatus answers with, unless members, orders or the phase
    /// have changed meanwhile.
    absl::Duration status_age_max = absl::Milliseconds(20);

    /// How often time passes in the coordinator. A call is answered at most this long after its
    /// deadline.
    absl::Duration tick = kCoordinatorTick;
  };

  /// The most readers that a status lists.
  static constexpr size_t kReadersListedMax = 64;

  /// REQUIRES: Coordinator::Restore takes `kept`.
  explicit CoordinatorService(Options options);
  ~CoordinatorService() override;

  /// Answers all waiting calls with UNAVAILABLE, ends the streams, and lets no further call wait,
  /// so that the gRPC server can shut down. If the run is over, watchers get the last status. To be
  /// called before the server's Shutdown.
  void Stop();

  /// Returns true once the run is over and every server that is not silent knows that it may exit.
  bool ServersMayStop();

  /// Returns DATA_LOSS if the run has finished, and its trained weights were to be saved and were
  /// not.
  absl::Status WeightsSaved();

  /// Returns DATA_LOSS if a server has shown that the state to go on from is an older copy.
  absl::Status Rollback();

  v1::RunStatus Status();

  // v1::Coordinator::CallbackService:
  grpc::ServerUnaryReactor* SyncServer(grpc::CallbackServerContext* context,
                                       const v1::SyncServerRequest* request,
                                       v1::SyncServerReply* reply) override;
  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context,
                                     const v1::RegisterRequest* request,
                                     v1::RegisterReply* reply) override;
  grpc::ServerUnaryReactor* PrepareModel(grpc::CallbackServerContext* context,
                                         const v1::PrepareModelRequest* request,
                                         v1::PrepareModelReply* reply) override;
  grpc::ServerUnaryReactor* FinishInitialization(grpc::CallbackServerContext* context,
                                                 const v1::FinishInitializationRequest* request,
                                                 v1::FinishInitializationReply* reply) override;
  grpc::ServerUnaryReactor* Meet(grpc::CallbackServerContext* context,
                                 const v1::MeetRequest* request, v1::MeetReply* reply) override;
  grpc::ServerBidiReactor<v1::HeartbeatRequest, v1::HeartbeatReply>* Heartbeat(
      grpc::CallbackServerContext* context) override;
  grpc::ServerBidiReactor<v1::GetWorkRequest, v1::GetWorkReply>* GetWork(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Report(grpc::CallbackServerContext* context,
                                   const v1::ReportRequest* request,
                                   v1::ReportReply* reply) override;
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const v1::LeaveRequest* request, v1::LeaveReply* reply) override;
  grpc::ServerUnaryReactor* EndTraining(grpc::CallbackServerContext* context,
                                        const v1::EndTrainingRequest* request,
                                        v1::EndTrainingReply* reply) override;
  grpc::ServerUnaryReactor* ChangeRun(grpc::CallbackServerContext* context,
                                      const v1::ChangeRunRequest* request,
                                      v1::ChangeRunReply* reply) override;
  grpc::ServerUnaryReactor* SaveCheckpoint(grpc::CallbackServerContext* context,
                                           const v1::SaveCheckpointRequest* request,
                                           v1::SaveCheckpointReply* reply) override;
  grpc::ServerUnaryReactor* Follow(grpc::CallbackServerContext* context,
                                   const v1::FollowRequest* request,
                                   v1::FollowReply* reply) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* reply) override;
  grpc::ServerWriteReactor<v1::RunStatus>* WatchStatus(
      grpc::CallbackServerContext* context, const v1::WatchStatusRequest* request) override;

 private:
  class Call;

  using Event = std::function<absl::Status(absl::Time now, Caller& caller)>;

  /// A question fills the reply and returns the call's status. Called under the lock.
  using Calls = ParkedCalls<CoordinatorCall*, absl::Status>;
  using Question = Calls::Question;
  using Answers = std::vector<std::pair<CoordinatorCall*, absl::Status>>;

  /// The work that one event left to be done without the lock.
  struct Aftermath {
    /// The changes that have to be on the disk before, counted as `to_keep_` is.
    uint64_t keep_first = 0;
    Answers answers;
    std::vector<CoordinatorNotes::Note> notes;
    std::optional<AuditLog::Event> audit;
  };

  /// Returns the event of a call that begins a relation: `event` if this server understands `peer`,
  /// else its refusal.
  static Event Introduced(std::string peer, uint32_t protocol, Event event);

  /// Runs `event` under the lock and answers with its status. A caller that may not be the
  /// `claimed` member is refused before. If the event succeeds, the caller counts as that member.
  grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext* context, ClaimedMember claimed,
                                  const Event& event);

  /// Does as Serve, and if the event succeeds, asks `question` until it has an answer or `wait_ms`
  /// milliseconds are over.
  grpc::ServerUnaryReactor* ServeOrPark(grpc::CallbackServerContext* context, ClaimedMember claimed,
                                        const Event& event, uint32_t wait_ms, Question question);

  /// Does as ServeOrPark for an existing call, which is answered through its OnAnswer.
  void AnswerOrPark(CoordinatorCall* call, ClaimedMember claimed, const Event& event,
                    uint32_t wait_ms, Question question);

  absl::Status TakeHeartbeat(const v1::HeartbeatRequest& request, absl::Time now,
                             v1::HeartbeatReply& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Notes which workers have come to a standstill, or go on.
  void LookForStalled(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<StalledWorkers::Sign> SignsNow(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Status TakeServerReport(const v1::SyncServerRequest& request, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeAggregatorReport(const v1::SyncServerRequest& request, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::ShardSaveStatus DescribeSave(ShardId shard, const SaveProgress::Shard& progress)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteEvaluation(WorkerId worker, const Evaluation& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckSettings(const v1::SyncServerRequest& request) const;
  void Cancel(CoordinatorCall* call);
  void RunTimer();
  void TickWatchers();

  /// Returns the encoded status. All calls of the same time share its bytes: however many ask, and
  /// do not take their answers, it is made and held once.
  grpc::ByteBuffer EncodedStatus();
  std::vector<v1::AggregatorStatus> AggregatorsNow(absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusFacts Facts(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Aftermath Settle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Does that work: now, or once the state is on the disk that the answers tell of. So nobody
  /// hears of anything that a restarted coordinator would not know.
  void Finish(Aftermath aftermath);
  void FinishNow(const Aftermath& aftermath) const;
  static void Refuse(Aftermath& aftermath, const std::string& why);
  void RunKeeper();

  /// Counts what has to be on the disk: changes of the coordinator, and events.
  uint64_t ChangesToKeep() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Notes that the disk does not take the state, or takes it again.
  void NoteKeeping() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const Options options_;

  StatusWatchers watchers_;

  Mutex mutex_;
  Coordinator coordinator_ ABSL_GUARDED_BY(mutex_);

  // The settings of the run with all changes to it.
  RunSpec settings_ ABSL_GUARDED_BY(mutex_);

  // A call stays in here until a thread takes it out to finish it.
  Calls parked_ ABSL_GUARDED_BY(mutex_);

  // The latest reports, for status.
  std::map<uint32_t, v1::ShardStatus> shards_ ABSL_GUARDED_BY(mutex_);
  // By group and shard.
  std::map<std::pair<uint32_t, uint32_t>, v1::AggregatorStatus> aggregators_
      ABSL_GUARDED_BY(mutex_);
  VersionSkew skew_ ABSL_GUARDED_BY(mutex_);
  std::map<WorkerId, v1::HeartbeatRequest> heartbeats_ ABSL_GUARDED_BY(mutex_);

  /// The newest that a worker has shown here of being at work, since it registered.
  struct Act {
    absl::Time last = absl::InfinitePast();
    bool waits_for_work = false;
    uint64_t examples = 0;
    uint64_t evaluation = 0;  // Under way; 0 if none is.
    uint64_t measured = 0;
  };
  std::map<WorkerId, Act> acts_ ABSL_GUARDED_BY(mutex_);
  StalledWorkers stalled_ ABSL_GUARDED_BY(mutex_);
  RunNews news_ ABSL_GUARDED_BY(mutex_);

  // With Options::keep: why the disk does not take the state; ChangesToKeep() that it is to
  // have, and has; and what waits for that, by age.
  std::string not_kept_ ABSL_GUARDED_BY(mutex_);
  uint64_t to_keep_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t kept_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Aftermath> unfinished_ ABSL_GUARDED_BY(mutex_);
  CondVar keeping_;

  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar stopping_;

  /// The newest answer of EncodedStatus.
  struct StatusAnswer {
    grpc::ByteBuffer bytes;
    absl::Time made = absl::InfinitePast();
    uint64_t changes = 0;  // Of the coordinator and its journal, before.
  };
  Mutex status_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  StatusAnswer status_answer_ ABSL_GUARDED_BY(status_mutex_);
  OpenStreams streams_{kStreamsMax};

  // One for each method: a member has a call of each open at a time.
  LatestCalls heartbeat_calls_;
  LatestCalls work_calls_;
  std::thread timer_;
  std::thread keeper_;  // Not started without Options::keep.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONTROL_PLANE_COORDINATOR_SERVICE_H_
