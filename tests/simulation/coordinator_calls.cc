#include "tests/simulation/coordinator_calls.h"

namespace slipstream {

void CoordinatorCalls::Try(Method method, const std::string& request,
                           const std::shared_ptr<std::optional<RetrySchedule>>& schedule,
                           std::function<void(const absl::StatusOr<std::string>&)> done) {
  const auto on_reply = [this, method, request, schedule,
                         done = std::move(done)](const absl::StatusOr<std::string>& reply) {
    if (reply.ok() || !IsTransient(reply.status())) return done(reply);
    if (!schedule->has_value()) {
      RetryOptions options;
      options.now = [this] { return world_.queue.now(); };
      schedule->emplace(options, number_ + retried_++);
    }
    const std::optional<absl::Duration> wait = (*schedule)->Next(reply.status());
    if (!wait.has_value()) return done(reply);
    world_.network.AtProcess(
        process_, world_.queue.now() + *wait,
        [this, method, request, schedule, done] { Try(method, request, schedule, done); });
  };
  world_.network.Call(method, request, process_, on_reply);
}

}  // namespace slipstream
