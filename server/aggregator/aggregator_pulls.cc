#include "server/aggregator/aggregator_pulls.h"

#include <utility>

namespace slipstream {

AggregatorPulls::~AggregatorPulls() {
  std::thread thread;
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    thread.swap(thread_);
  }
  work_came_.NotifyAll();
  if (thread.joinable()) thread.join();
}

std::optional<Answer> AggregatorPulls::Pull(const GroupPulls::Asked& asked, WaitingCall* call) {
  MutexLock lock(mutex_);
  std::optional<Answer> answer = pulls_.Pull(asked, call->name());
  if (answer.has_value()) return answer;
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  work_came_.NotifyOne();
  return std::nullopt;
}

bool AggregatorPulls::Cancel(WaitingCall* call) {
  MutexLock lock(mutex_);
  return pulls_.Cancel(call->name());
}

void AggregatorPulls::Finish(WaitingCall* call) {
  MutexLock lock(mutex_);
  pulls_.Finish(call->name());
}

void AggregatorPulls::Run() {
  for (;;) {
    std::optional<GroupPulls::Asked> asked;
    {
      MutexLock lock(mutex_);
      while (!is_stopping_ && !(asked = pulls_.Next()).has_value()) work_came_.Wait(mutex_);
      if (is_stopping_) return;
    }
    absl::StatusOr<GroupPulls::Fetched> fetched = fetch_(*asked);
    Answers answers;
    {
      MutexLock lock(mutex_);
      answers = pulls_.OnFetched(*asked, std::move(fetched));
    }
    Give(std::move(answers));
  }
}

}  // namespace slipstream
