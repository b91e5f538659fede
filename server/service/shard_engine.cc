#include "server/service/shard_engine.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "common/base/check.h"
#include "server/core/shard_core_options.h"
#include "server/service/shard_report.h"

namespace slipstream {

ShardEngine::ShardEngine(const Options& options, std::optional<PushLog> push_log)
    : options_(options),
      core_(ShardCoreOptions(options.run, options.shard)),
      push_log_(std::move(push_log)),
      thread_([this] { RunJobs(); }) {}

ShardEngine::~ShardEngine() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  work_came_.NotifyAll();
  thread_.join();
}

// Orders.

void ShardEngine::OnOrders(const ServerOrders& orders) {
  std::vector<Delivery> deliveries;
  bool is_news = false;
  std::string failure;
  {
    MutexLock lock(mutex_);
    if (orders.number <= orders_.number) return;
    is_news = orders.phase != orders_.phase || orders.view.number != orders_.view.number;
    orders_ = orders;
    step_times_.OnView(orders.view);
    if (failure_.empty()) failure = failure_ = TakeModel(orders);
    deliveries = Absorb(core_.OnView(orders.view));
    for (Delivery& delivery : Absorb(core_.OnPhase(orders.phase, orders.drain_version))) {
      deliveries.push_back(std::move(delivery));
    }
    if (orders.ends_work) {
      for (Delivery& delivery : Absorb(core_.OnWorkEnds())) {
        deliveries.push_back(std::move(delivery));
      }
    }
    WakeThread();
  }
  // Without the lock: whoever reads the log may be slow.
  if (is_news) {
    spdlog::info("orders phase={} view={} members={}", static_cast<int>(orders.phase),
                 Value(orders.view.number), orders.view.members.size());
  }
  if (!failure.empty()) spdlog::error("{}", failure);
  Deliver(std::move(deliveries));
}

std::string ShardEngine::Failure() {
  MutexLock lock(mutex_);
  return failure_;
}

bool ShardEngine::Initialized() {
  MutexLock lock(mutex_);
  return orders_.grant != 0 && initialized_grant_ == orders_.grant;
}

bool ShardEngine::Drained() {
  MutexLock lock(mutex_);
  return core_.is_drained();
}

v1::ShardStatus ShardEngine::Report() {
  MutexLock lock(mutex_);
  v1::ShardStatus status = DescribeShard(core_);
  DescribeTimes(round_clock_, step_times_, options_.now(), status);
  status.set_shard(Value(options_.shard));
  status.set_address(options_.address);
  if (orders_.model.has_value()) {
    const ParameterRange range = orders_.model->shard_map.range(options_.shard);
    status.set_begin(range.begin);
    status.set_end(range.end);
  }
  status.set_live_versions(path_ == nullptr ? 0 : static_cast<uint32_t>(path_->live_versions()));
  return status;
}

// Jobs.

std::vector<ShardEngine::Delivery> ShardEngine::Absorb(const Effects& effects) {
  UpdateJob work;
  for (const Fold& fold : effects.folds) {
    const auto held = held_.find(fold.push);
    PS_CHECK(held != held_.end());
    work.folds.push_back({fold, std::move(held->second)});
    held_.erase(held);
  }
  work.update = effects.update;
  if (!work.folds.empty() || work.update.has_value()) {
    jobs_.push_back({.work = std::move(work)});
  }
  std::vector<Delivery> deliveries;
  for (const Release& release : effects.released) {
    const auto found = parked_.find(release.ticket);
    PS_CHECK(found != parked_.end());
    Parked parked = std::move(found->second);
    parked_.erase(found);
    parked.call->ticket_.reset();
    Answer answer = {.push = std::move(parked.push)};
    if (parked.wants_weights) answer.weights = Give(parked, release.version, release.work);
    deliveries.emplace_back(parked.call, std::move(answer));
  }
  if (core_.is_initialized()) {
    round_clock_.Observe(core_.decided(), core_.round().contributions() + core_.round().excused(),
                         options_.now());
  }
  return deliveries;
}

void ShardEngine::RunJobs() {
  while (true) {
    std::optional<ShardJob> job;
    std::vector<PushRecord> records;
    {
      MutexLock lock(mutex_);
      while (!ThreadHasWork() && !(is_stopping_ && !is_running_)) work_came_.Wait(mutex_);
      if (!ThreadHasWork()) return;
      records.swap(records_);
      if (!jobs_.empty() && !is_running_) job = TakeJob();
    }
    if (job.has_value()) RunJob(*std::move(job));
    if (!records.empty()) WriteLog(records);
  }
}

ShardJob ShardEngine::TakeJob() {
  is_running_ = true;
  ShardJob job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

std::optional<ShardJob> ShardEngine::TakeShortJob() {
  if (is_running_ || jobs_.size() != 1 || !jobs_.front().is_short()) return std::nullopt;
  return TakeJob();
}

void ShardEngine::WakeThread() {
  if (ThreadHasWork()) work_came_.NotifyAll();
}

void ShardEngine::RunJob(ShardJob job) {
  const uint64_t bytes = job.payload_bytes();
  const std::optional<Version> version = job.version();
  const uint64_t grant = job.grant;
  std::optional<Weights> made = std::move(job).Run(*path_);
  std::vector<Delivery> deliveries;
  {
    MutexLock lock(mutex_);
    is_running_ = false;
    core_.ReleaseBytes(bytes);
    if (made.has_value()) {
      published_ = *std::move(made);
      if (version.has_value()) {
        deliveries = Absorb(core_.OnPublished(*version));
      } else {
        initialized_grant_ = grant;
        if (!core_.is_initialized()) deliveries = Absorb(core_.OnInitialized());
      }
    }
    WakeThread();
    if (is_stopping_) work_came_.NotifyAll();
  }
  Deliver(std::move(deliveries));
}

void ShardEngine::WriteLog(const std::vector<PushRecord>& records) {
  if (push_log_failed_) return;
  absl::Status status;
  for (const PushRecord& record : records) {
    if (status.ok()) status = push_log_->Append(record);
  }
  if (status.ok()) status = push_log_->Flush();
  if (status.ok()) return;
  // Training goes on without the log, which ends here: lines after a gap would deceive its reader.
  push_log_failed_ = true;
  spdlog::error("the push log ends here: {}", std::string(status.message()));
}

void ShardEngine::Deliver(std::vector<Delivery>&& deliveries) {
  for (auto& [call, answer] : deliveries) call->OnAnswer(std::move(answer));
}

}  // namespace slipstream
