#ifndef SLIPSTREAM_SERVER_SERVER_PROCESS_H_
#define SLIPSTREAM_SERVER_SERVER_PROCESS_H_

#include <grpcpp/server.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/process/process_limits.h"
#include "common/process/stop_signal.h"
#include "common/security/credential_files.h"
#include "common/settings/run_spec.h"
#include "server/aggregator/aggregator_service.h"
#include "server/connection_memory.h"
#include "server/control_plane/coordinator_service.h"
#include "server/control_plane/operation_service.h"
#include "server/control_plane/server_sync.h"
#include "server/data_plane/shard_service.h"
#include "server/http/http_service.h"
#include "server/listen/access.h"
#include "server/listen/connections.h"
#include "server/listen/local_listener.h"
#include "server/listen/tcp_listener.h"
#include "server/listen/unknown_methods.h"
#include "server/listen_address.h"
#include "server/storage/coordinator_journal.h"
#include "server/storage/posix_disk.h"

namespace slipstream {

/// Everything that one ps_server runs: its shard or its aggregator, the coordinator in the server
/// of shard 0, the gRPC server in front of them, and the conversation with the coordinator.
///
/// Not thread-safe: one owner.
class ServerProcess {
 public:
  /// Calls under way when the server stops have this long to end.
  static constexpr absl::Duration kShutdownTime = absl::Seconds(2);

  /// How long a shard may take to carry out and to write what it has begun, when the server stops.
  static constexpr absl::Duration kDrainTime = absl::Seconds(8);

  struct Options {
    RunSpec run;
    ShardId shard{};
    ListenAddress listen;

    /// Set for the aggregator of this group of workers for the shard, in place of the shard.
    std::optional<uint32_t> group;

    /// The address of the server of shard 0; not used in that server itself.
    std::string coordinator;

    /// Whether the server goes on although its directory holds an older state than others know of.
    bool accepts_rollback = false;

    /// The credential files, in which CheckCredentials has found nothing wrong.
    CredentialFiles credentials = {};

    /// Returns the number by which the process is known among the servers.
    uint32_t number() const {
      return group.has_value() ? run.cluster.AggregatorNumber(*group, Value(shard)) : Value(shard);
    }
  };

  explicit ServerProcess(Options options) : options_(std::move(options)) {}
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Opens the push log and the port. Returns RESOURCE_EXHAUSTED if the address cannot be listened
  /// on: it may be free later. Returns INVALID_ARGUMENT if the host to listen on is not known.
  absl::Status Listen();

  /// The address at which others reach this server. REQUIRES: Listen() was OK.
  std::string address() const { return options_.listen.PublicAddress(tcp_->port()); }

  /// Serves until the run is over or this server cannot take part in it, and returns that result.
  /// Returns CANCELLED if `stop` asks it to stop before, and OK if an operator has asked it to
  /// drain (v1::Operation). REQUIRES: Listen() was OK.
  absl::Status Serve(const StopSignal& stop);

  /// Drains the shard, which takes at most kDrainTime, ends all calls, and waits until the push log
  /// is written. DATA_LOSS if the last checkpoint could not be written, which it logs, or if the
  /// push log lacks pushes.
  absl::Status Finish();

  /// Returns whether a thread writes or reads a checkpoint, for which the destructor would wait.
  bool IsAtDisk() { return shard_ != nullptr && shard_->IsAtDisk(); }

 private:
  absl::Status MakeServices(const std::string& local_socket);
  absl::Status MakeShard(const std::string& local_socket);
  void MakeAggregator(const std::string& local_socket);

  /// Takes the number of values of the shard, by which what its connections hold is bounded.
  void OnModel(uint64_t values);

  /// Makes the coordinator, of a new run or of the one that an earlier process left unfinished.
  absl::Status MakeCoordinator();

  /// Returns what such a process left; nothing if a new run is to begin, as the last one is over
  /// and its servers know. Fails if it cannot be gone on with.
  absl::StatusOr<std::optional<SavedCoordinator>> FindSavedRun() const;

  /// Adds to the message where the address came from, and what the user can do.
  absl::Status WithRemedy(const absl::Status& cannot_listen) const;
  void ListenToThisMachine(const std::string& local_socket);
  std::shared_ptr<grpc::ServerCredentials> Credentials();

  /// Begins to answer at the HTTP port, if there is one.
  absl::Status AnswerHttp();
  ServerFacts Facts();
  std::string CoordinatorAddress() const;

  /// Logs credential files with which new connections fail, once for each change. Warns, at most
  /// once an hour, of a certificate that soon ends and of files that every user can read.
  void LookAtCredentials(absl::Time now);
  v1::DrainReply Drained();
  void Shutdown();

  const Options options_;
  PosixDisk disk_;
  std::unique_ptr<DiskLock> coordinator_lock_;  // Null where no coordinator keeps its state.
  ConnectionMemory connection_memory_{ReadMemoryBytes().limit};
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<CoordinatorService> coordinator_;  // Null but in the server of shard 0.
  std::unique_ptr<ShardService> shard_;              // Null in an aggregator.
  std::unique_ptr<AggregatorService> aggregator_;    // Null but in an aggregator.
  std::unique_ptr<OperationService> operation_;
  std::unique_ptr<UnknownMethods> unknown_methods_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<TcpListener> tcp_;
  std::unique_ptr<LocalListener> local_;  // Null if there are no local sockets.
  std::unique_ptr<ServerSync> sync_;
  std::shared_ptr<Access> access_;     // Null if nothing is encrypted.
  std::unique_ptr<HttpService> http_;  // Null without http.listen. Its threads use all above.

  // For those threads.
  std::atomic<bool> is_ending_ = false;
  std::atomic<int64_t> certificate_ends_ = std::numeric_limits<int64_t>::max();  // Unix seconds.

  // The last problem found with the credentials (empty if none), and when the next warning about
  // them may be logged.
  std::string wrong_with_credentials_;
  absl::Time next_warning_ = absl::InfinitePast();
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVER_PROCESS_H_
