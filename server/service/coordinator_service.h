#ifndef SLIPSTREAM_SERVER_SERVICE_COORDINATOR_SERVICE_H_
#define SLIPSTREAM_SERVER_SERVICE_COORDINATOR_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/run/run_spec.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/core/coordinator.h"
#include "server/listen/caller.h"
#include "server/listen/connections.h"
#include "server/service/coordinator_call.h"
#include "server/service/latest_calls.h"
#include "server/service/open_streams.h"
#include "server/service/question_stream.h"
#include "server/service/status_watchers.h"
#include "server/status/run_status.h"
#include "server/status/version_skew.h"

namespace slipstream {

/// Serves Coordinator over gRPC: decodes, asks it under the lock, answers after releasing it.
///
/// Heartbeats and questions for work come over streams that stay open: a new call costs several
/// times what a message takes. A call that has to wait is parked without a thread. After every
/// event the parked calls whose answer may have changed are asked again; a timer thread lets time
/// pass in the coordinator and answers those whose time is up with what holds by then. A parked
/// call that its client gives up is dropped.
///
/// Thread-safe: guarded by its own mutex; never blocks on I/O under it.
class CoordinatorService final : public v1::Coordinator::CallbackService {
 public:
  /// Calls that wait are answered after this at the latest.
  static constexpr absl::Duration kWaitMax = absl::Seconds(10);

  /// More waiting calls than all members could have are refused with RESOURCE_EXHAUSTED.
  static constexpr size_t kParkedMax = 10'000;

  /// More open streams than two of every member are refused with RESOURCE_EXHAUSTED.
  static constexpr size_t kStreamsMax = 20'000;

  struct Options {
    RunSpec spec;

    /// Names this run; random.
    uint64_t run = 0;

    /// The settings in canonical form, as workers take them.
    std::string settings;

    /// Says in which key another server's settings differ, or nothing if they do not.
    std::function<std::string(const std::string& theirs)> settings_difference;

    /// Must not go back.
    std::function<absl::Time()> now;

    /// These are the server's that this is registered with, and must outlive it. Null: nothing
    /// bounds them.
    Connections* connections = nullptr;

    /// How often time passes in the coordinator; calls are answered at most so much after their
    /// deadline.
    absl::Duration tick = absl::Milliseconds(20);
  };

  explicit CoordinatorService(Options options);
  ~CoordinatorService() override;

  /// Answers all waiting calls with UNAVAILABLE, ends the streams, and lets no other wait, so that
  /// the gRPC server can shut down; of a run that is over, watchers get the last status. To be
  /// called before its Shutdown.
  void Stop();

  /// True once the run is over and every server that is still there knows that it may exit.
  bool ServersMayStop();

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
  grpc::ServerBidiReactor<v1::HeartbeatRequest, v1::HeartbeatReply>* Heartbeat(
      grpc::CallbackServerContext* context) override;
  grpc::ServerBidiReactor<v1::GetWorkRequest, v1::GetWorkReply>* GetWork(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Report(grpc::CallbackServerContext* context,
                                   const v1::ReportRequest* request,
                                   v1::ReportReply* reply) override;
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const v1::LeaveRequest* request, v1::LeaveReply* reply) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::RunStatus* reply) override;
  grpc::ServerWriteReactor<v1::RunStatus>* WatchStatus(
      grpc::CallbackServerContext* context, const v1::WatchStatusRequest* request) override;

 private:
  class Call;

  using Event = std::function<absl::Status(absl::Time now, Caller& caller)>;

  /// Fills the reply and returns the call's status, or returns nothing to wait on. Asked under the
  /// lock; `is_last` when there is no time left to wait.
  using Question = std::function<std::optional<absl::Status>(bool is_last)>;

  struct ParkedCall {
    CoordinatorCall* call = nullptr;
    absl::Time deadline;
    Question question;
  };
  using Answers = std::vector<std::pair<CoordinatorCall*, absl::Status>>;

  /// What one event left to do without the lock.
  struct Aftermath {
    Answers answers;
    std::vector<Coordinator::Note> notes;
    std::optional<AuditLog::Event> audit;
  };

  /// Runs `event` under the lock and answers with its status. A caller that may not be the
  /// `claimed` member is refused before; one for which the event went well is that member.
  grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext* context, ClaimedMember claimed,
                                  const Event& event);

  /// Does the same, and if the event went well asks `question` until it has an answer or `wait_ms`
  /// are over.
  grpc::ServerUnaryReactor* ServeOrPark(grpc::CallbackServerContext* context, ClaimedMember claimed,
                                        const Event& event, uint32_t wait_ms, Question question);

  /// The same for a call that is there already, answered through its OnAnswer.
  void AnswerOrPark(CoordinatorCall* call, ClaimedMember claimed, const Event& event,
                    uint32_t wait_ms, Question question);

  absl::Status TakeHeartbeat(const v1::HeartbeatRequest& request, absl::Time now,
                             v1::HeartbeatReply& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckSettings(const v1::SyncServerRequest& request) const;
  void Cancel(CoordinatorCall* call);
  void RunTimer();
  void TickWatchers();
  StatusFacts Facts(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Aftermath Settle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(const Aftermath& aftermath) const;

  // Constant after construction.
  const Options options_;

  StatusWatchers watchers_;

  Mutex mutex_;
  Coordinator coordinator_ ABSL_GUARDED_BY(mutex_);

  // By age. A call is in here until someone takes it out to finish it.
  std::map<uint64_t, ParkedCall> parked_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_parked_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time next_deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // Of those.

  // coordinator_.changes() when the parked calls were last asked.
  uint64_t changes_answered_ ABSL_GUARDED_BY(mutex_) = 0;

  // The latest, for status.
  std::map<uint32_t, v1::ShardStatus> shards_ ABSL_GUARDED_BY(mutex_);
  VersionSkew skew_ ABSL_GUARDED_BY(mutex_);
  std::map<WorkerId, v1::HeartbeatRequest> heartbeats_ ABSL_GUARDED_BY(mutex_);

  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar stopping_;
  OpenStreams streams_{kStreamsMax};

  // By method: a member uses one beside the other.
  LatestCalls heartbeat_calls_;
  LatestCalls work_calls_;
  std::thread timer_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_COORDINATOR_SERVICE_H_
