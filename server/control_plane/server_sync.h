#ifndef SLIPSTREAM_SERVER_CONTROL_PLANE_SERVER_SYNC_H_
#define SLIPSTREAM_SERVER_CONTROL_PLANE_SERVER_SYNC_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/control_plane/server_orders.h"
#include "server/control_plane/server_talk.h"

namespace slipstream {

/// Holds the conversation of a shard's server, or of an aggregator, with the coordinator
/// (ServerTalk): reports its state again and again, and hands it the orders that come back. The
/// process of shard 0 does so too, over loopback, so that there is one path.
///
/// The coordinator may come late or be away for a while. Then it is asked again, and the server
/// goes on with the orders that it has. Once a call has failed, the next ones wait for a
/// connection, so that a coordinator that has come back is found at once. Pauses grow while it
/// refuses.
///
/// Thread-safe: guarded by its own mutex; its thread makes the calls.
class ServerSync {
 public:
  struct Options {
    ServerTalk::Options talk;

    /// The configured address of the coordinator, for the log.
    std::string coordinator;

    /// Introduces this server on what may be a new connection, before any long message. May wait
    /// for a connection for a short while, and fail.
    std::function<void(uint64_t run)> greet = [](uint64_t) {};

    /// How long another process of this shard has to be silent before this one takes over, as the
    /// coordinator counts it; for the log.
    absl::Duration takeover = absl::Seconds(5);

    /// How long the coordinator may be silent, or keep another process in this one's place, before
    /// the server gives up.
    absl::Duration unreachable_max = absl::Minutes(2);
  };

  /// Starts at once. `sink` must outlive the object.
  ServerSync(Options options, std::unique_ptr<v1::Coordinator::StubInterface> coordinator,
             OrdersSink& sink);
  ~ServerSync();
  ServerSync(const ServerSync&) = delete;
  ServerSync& operator=(const ServerSync&) = delete;

  /// Returns nothing while the conversation goes on; OK once the run has finished and the
  /// coordinator knows that this server has heard so; ABORTED, likewise, after a run that failed;
  /// otherwise why the server cannot take part (any longer).
  std::optional<absl::Status> result();

  /// The server's knowledge from the conversation.
  struct Known {
    uint64_t run = 0;  // 0 before the first answer.
    Phase phase = Phase::kWaitingForServers;
    std::string failure;       // Why the run has failed; empty if it has not.
    std::string lost_because;  // Why the coordinator does not answer; empty if it does.

    /// The last report to it: `status` of a shard, or `aggregator`. Null before the first.
    std::shared_ptr<const v1::SyncServerRequest> report;
  };
  Known known();

  /// Ends the conversation, also in the middle of a call.
  void Stop();

 private:
  void Run();
  absl::Status Converse();
  absl::Status SyncOnce(v1::SyncServerReply& reply);
  void OnFailedCall(const absl::Status& status);

  /// Notes that the coordinator keeps another process for this shard.
  void OnRefused(const std::string& why);

  /// Returns why the server gives up: RESOURCE_EXHAUSTED if another process has its place, and
  /// UNAVAILABLE if nobody answers.
  absl::Status GivesUp() const;
  void OnAnswer();
  bool Pause(absl::Duration duration);

  // Constant after construction.
  const Options options_;
  const std::unique_ptr<v1::Coordinator::StubInterface> coordinator_;
  OrdersSink& sink_;

  // Owned by the thread.
  ServerTalk talk_;
  bool was_answered_ = false;
  bool is_lost_ = false;
  bool is_refused_ = false;  // Another process has this one's place.
  std::string lost_because_;
  std::chrono::steady_clock::time_point last_answer_;

  Mutex mutex_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar stopping_;

  // The call under way; null if there is none.
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mutex_);
  Known known_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONTROL_PLANE_SERVER_SYNC_H_
