#ifndef SLIPSTREAM_TESTS_BENCHMARKS_CONTROL_LOAD_H_
#define SLIPSTREAM_TESTS_BENCHMARKS_CONTROL_LOAD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "proto/coordinator.grpc.pb.h"

namespace slipstream::benchmarks {

/// Many workers' conversation with the coordinator, each over a connection of its own: a heartbeat
/// each second at the moments that worker/core/heartbeat_times.h says, with figures and progress,
/// every tenth with the wish for an answer, and every fifth second a question for work.
///
/// A stream that fails ends the process.
class ControlLoad {
 public:
  /// Opens the streams; the worker with id i is `identities[i]`.
  ControlLoad(int port, const std::vector<v1::Identity>& identities);
  ~ControlLoad();
  ControlLoad(const ControlLoad&) = delete;
  ControlLoad& operator=(const ControlLoad&) = delete;

  /// Sends until then. Returns how many messages that were.
  uint64_t SendUntil(absl::Time end);

 private:
  struct Worker;

  void Beat(Worker& worker);
  void AskForWork(Worker& worker);

  std::vector<std::unique_ptr<Worker>> workers_;
  uint64_t sent_ = 0;
};

/// A connection that no other one of this process shares.
std::unique_ptr<v1::Coordinator::Stub> ConnectAlone(int port);

}  // namespace slipstream::benchmarks

#endif  // SLIPSTREAM_TESTS_BENCHMARKS_CONTROL_LOAD_H_
