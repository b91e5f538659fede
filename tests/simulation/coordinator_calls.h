#ifndef SLIPSTREAM_TESTS_SIMULATION_COORDINATOR_CALLS_H_
#define SLIPSTREAM_TESTS_SIMULATION_COORDINATOR_CALLS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/check.h"
#include "tests/simulation/network.h"
#include "tests/simulation/sim_world.h"
#include "worker/core/call_tries.h"

namespace slipstream {

/// Makes a worker's calls to the coordinator, and repeats each until it is answered or given up, as
/// CallTries says.
///
/// Not thread-safe: one owner. It must outlive the event queue's last event.
class CoordinatorCalls {
 public:
  /// `number` identifies the process within the run.
  CoordinatorCalls(const SimWorld& world, const std::shared_ptr<Process>& process, uint64_t number)
      : world_(world), process_(process), number_(number) {}

  /// Makes a call. `done` is called once, unless Close comes first.
  template <typename Reply, typename Request>
  void Call(Method method, const Request& request,
            std::function<void(const absl::StatusOr<Reply>&)> done) {
    Try(method, request.SerializeAsString(),
        std::make_shared<CallTries>(retry_, number_ + calls_++),
        [this, done = std::move(done)](const absl::StatusOr<std::string>& bytes) {
          if (is_closed_) return;
          if (!bytes.ok()) return done(bytes.status());
          Reply reply;
          PS_CHECK(reply.ParseFromString(*bytes));
          done(reply);
        });
  }

  /// Sets for how long every later call is repeated.
  void PersistFor(absl::Duration give_up_after) { retry_.give_up_after = give_up_after; }

  /// Suppresses all further answers.
  void Close() { is_closed_ = true; }

 private:
  void Try(Method method, const std::string& request, const std::shared_ptr<CallTries>& tries,
           std::function<void(const absl::StatusOr<std::string>&)> done);

  const SimWorld world_;
  const std::shared_ptr<Process> process_;
  const uint64_t number_;
  RetryOptions retry_;
  uint64_t calls_ = 0;
  bool is_closed_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_COORDINATOR_CALLS_H_
