#ifndef SLIPSTREAM_TESTS_BENCHMARKS_CONTROL_LOAD_H_
#define SLIPSTREAM_TESTS_BENCHMARKS_CONTROL_LOAD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "proto/coordinator.grpc.pb.h"

namespace slipstream::benchmarks {

/// The conversation of many workers with the coordinator, each over its own connection. A worker
/// sends a heartbeat each second, at the times given by worker/core/heartbeat_times.h, with figures
/// and progress. Every tenth heartbeat asks for an answer. Every fifth second the worker asks for
/// work.
///
/// A stream that fails ends the process.
class ControlLoad {
 public:
  /// Opens the streams. The worker with id i is `identities[i]`.
  ControlLoad(int port, const std::vector<v1::Identity>& identities);
  ~ControlLoad();
  ControlLoad(const ControlLoad&) = delete;
  ControlLoad& operator=(const ControlLoad&) = delete;

  /// Sends messages until `end`. Returns the number of messages sent.
  uint64_t SendUntil(absl::Time end);

 private:
  struct Worker;

  void Beat(Worker& worker);
  void AskForWork(Worker& worker);

  std::vector<std::unique_ptr<Worker>> workers_;
  uint64_t sent_ = 0;
};

/// Opens a connection that no other stub of this process shares.
std::unique_ptr<v1::Coordinator::Stub> ConnectAlone(int port);

}  // namespace slipstream::benchmarks

#endif  // SLIPSTREAM_TESTS_BENCHMARKS_CONTROL_LOAD_H_
