#ifndef SLIPSTREAM_DEPLOY_LAB_VIRTUAL_PROCESS_H_
#define SLIPSTREAM_DEPLOY_LAB_VIRTUAL_PROCESS_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "deploy/lab/event_queue.h"

namespace slipstream {

/// The life of a process in virtual time. What was to happen to it later does not happen once it is
/// gone.
///
/// Not thread-safe: one owner.
class VirtualProcess {
 public:
  explicit VirtualProcess(EventQueue& queue) : queue_(queue) {}

  /// Returns a function that calls this one while the process is there.
  template <typename Callback>
  auto While(Callback callback) const {
    return
        [token = std::weak_ptr<bool>(token_), callback = std::move(callback)](auto&&... arguments) {
          if (!token.expired()) callback(std::forward<decltype(arguments)>(arguments)...);
        };
  }

  /// Has this happen at `time`, if the process is there then.
  void At(absl::Time time, std::function<void()> event) {
    queue_.At(time, While(std::move(event)));
  }

  absl::Time now() const { return queue_.now(); }
  void End() { token_.reset(); }

 private:
  EventQueue& queue_;
  std::shared_ptr<bool> token_ = std::make_shared<bool>();
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_VIRTUAL_PROCESS_H_
