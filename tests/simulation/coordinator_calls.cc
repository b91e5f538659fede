#include "tests/simulation/coordinator_calls.h"

namespace slipstream {

void CoordinatorCalls::Try(Method method, const std::string& request,
                           const std::shared_ptr<CallTries>& tries,
                           std::function<void(const absl::StatusOr<std::string>&)> done) {
  tries->OnBegin(world_.queue.now());
  const auto on_reply = [this, method, request, tries,
                         done = std::move(done)](const absl::StatusOr<std::string>& reply) {
    if (reply.ok()) return done(reply);
    const absl::StatusOr<Repetition> again =
        tries->OnFailure(reply.status(), "the coordinator", world_.queue.now());
    if (!again.ok()) return done(again.status());
    world_.network.AtProcess(
        process_, world_.queue.now() + again->wait,
        [this, method, request, tries, done] { Try(method, request, tries, done); });
  };
  world_.network.Call(method, request, process_, on_reply);
}

}  // namespace slipstream
