#include "worker/training/unit_fetcher.h"

#include <utility>

#include "absl/time/clock.h"
#include "common/base/check.h"

namespace slipstream {

UnitFetcher::UnitFetcher(const CoordinatorClient& coordinator, const Identity& identity,
                         const ConsistencySpec& first, uint32_t slots, const StepFigures& figures,
                         Interruption& interruption)
    : figures_(figures),
      interruption_(interruption),
      stream_(coordinator),
      asking_(identity, first, slots),
      thread_([this] { Run(); }) {}

UnitFetcher::~UnitFetcher() {
  {
    MutexLock lock(mutex_);
    is_closing_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void UnitFetcher::Ask(const WorkWish& wish) {
  MutexLock lock(mutex_);
  if (is_asked_ || result_) return;
  wish_ = wish;
  is_asked_ = true;
  changed_.NotifyAll();
}

std::optional<UnitFetcher::Result> UnitFetcher::Take() {
  MutexLock lock(mutex_);
  return std::exchange(result_, std::nullopt);
}

UnitFetcher::Result UnitFetcher::Await(const std::function<void()>& on_no_work) {
  {
    MutexLock lock(mutex_);
    PS_CHECK(is_asked_ || result_);
    while (!result_ && !has_no_work_) changed_.Wait(mutex_);
    if (result_) return *std::exchange(result_, std::nullopt);
  }
  on_no_work();
  MutexLock lock(mutex_);
  while (!result_) changed_.Wait(mutex_);
  return *std::exchange(result_, std::nullopt);
}

void UnitFetcher::Run() {
  for (;;) {
    WorkWish wish;
    {
      MutexLock lock(mutex_);
      while (!is_closing_ && !is_asked_) changed_.Wait(mutex_);
      if (is_closing_) return;
      wish = wish_;
    }
    Result result = Fetch(wish);
    MutexLock lock(mutex_);
    result_ = std::move(result);
    is_asked_ = false;
    has_no_work_ = false;
    changed_.NotifyAll();
  }
}

bool UnitFetcher::IsClosing() {
  MutexLock lock(mutex_);
  return is_closing_;
}

UnitFetcher::Result UnitFetcher::Fetch(const WorkWish& wish) {
  while (!interruption_.interrupted() && !IsClosing()) {
    const auto progress = figures_.Read(absl::Now()).progress;
    const absl::StatusOr<v1::GetWorkReply> reply =
        stream_.Ask(asking_.Request(progress, wish), WorkAsking::kWait);
    if (!reply.ok()) return reply.status();
    absl::StatusOr<std::optional<WorkNews>> news = asking_.OnReply(*reply, wish.generation);
    if (!news.ok()) return news.status();
    if (news->has_value()) return **std::move(news);
    MutexLock lock(mutex_);
    has_no_work_ = true;
    changed_.NotifyAll();
  }
  return absl::CancelledError("stopped");
}

}  // namespace slipstream
