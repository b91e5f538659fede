#include "worker/allreduce/gradient_sum.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/check.h"

namespace slipstream {
namespace {

/// How soon an interruption ends a wait. It does not wake the wait, but this is soon enough.
constexpr std::chrono::milliseconds kInterruptionSeen{100};

/// What ranks add up beside the gradients, as numbers that a double holds exactly.
enum Count : size_t { kExamples, kLeftOut, kEnds, kCounts };

}  // namespace

GradientSum::GradientSum(Collective& collective, size_t values, const Options& options,
                         std::function<bool()> interrupted)
    : collective_(collective),
      options_(options),
      interrupted_(std::move(interrupted)),
      sum_(values),
      thread_([this] { Run(); }) {
  PS_CHECK(values > 0 && options.bucket_values > 0);
}

GradientSum::~GradientSum() {
  if (is_open()) {
    if (!feed_->is_over()) feed_->Abort();
    collective_.Abort();
  }
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

GradientFeed& GradientSum::Begin(const Share& share) {
  PS_CHECK(!is_open());
  PS_CHECK(share.gradient.empty() || share.gradient.size() == sum_.size());
  share_ = share;
  result_ = {};
  feed_ = std::make_unique<GradientFeed>(sum_.size());
  if (share.gradient.empty()) feed_->Abort();
  Start([this] { return RunRound(); });
  return *feed_;
}

absl::StatusOr<GradientSum::Result> GradientSum::Finish() {
  PS_CHECK(is_open() && feed_->is_over());
  const absl::Status status = Await();
  feed_.reset();
  if (!status.ok()) return status;
  return result_;
}

absl::StatusOr<bool> GradientSum::IsSame(uint64_t number) {
  PS_CHECK(!is_open());
  bool is_same = false;
  Start([this, number, &is_same] {
    const absl::StatusOr<bool> answer = collective_.IsSame(number);
    is_same = answer.ok() && *answer;
    return answer.status();
  });
  if (absl::Status status = Await(); !status.ok()) return status;
  return is_same;
}

void GradientSum::Start(std::function<absl::Status()> task) {
  MutexLock lock(mutex_);
  task_ = std::move(task);
  outcome_.reset();
  changed_.NotifyAll();
}

absl::Status GradientSum::Await() {
  MutexLock lock(mutex_);
  bool was_interrupted = false;
  while (!outcome_.has_value()) {
    changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kInterruptionSeen);
    if (outcome_.has_value() || was_interrupted || !interrupted_()) continue;
    was_interrupted = true;
    collective_.Abort();
  }
  const bool is_consequence = was_interrupted && !outcome_->ok();
  return is_consequence ? absl::CancelledError("stopped") : *outcome_;
}

void GradientSum::Run() {
  for (;;) {
    std::function<absl::Status()> task;
    {
      MutexLock lock(mutex_);
      while (task_ == nullptr && !is_ending_) changed_.Wait(mutex_);
      if (task_ == nullptr) return;
      task = std::exchange(task_, nullptr);
    }
    const absl::Status outcome = task();
    // Ranks that wait for others than the one that is lost would not notice.
    if (!outcome.ok()) collective_.Abort();
    MutexLock lock(mutex_);
    outcome_ = outcome;
    changed_.NotifyAll();
  }
}

absl::Status GradientSum::RunRound() {
  if (options_.waits_for_seal) feed_->AwaitSeal();
  if (absl::Status status = AddUp(); !status.ok()) return status;
  const bool counts = feed_->AwaitSeal();
  const absl::Time counting = absl::Now();
  std::array<double, kCounts> counted = {};
  counted[kExamples] = counts ? share_.examples : 0;
  counted[kLeftOut] = !counts && !share_.gradient.empty() ? 1 : 0;
  counted[kEnds] = share_.wants_end ? 1 : 0;
  if (absl::Status status = collective_.Sum(counted); !status.ok()) return status;
  result_.busy += absl::Now() - counting;
  result_.examples = static_cast<uint64_t>(counted[kExamples]);
  result_.ends = counted[kEnds] > 0;
  // The sums may have parts of gradients that were left out later. Now all ranks know what counts.
  if (counted[kLeftOut] > 0 && result_.examples > 0) {
    if (absl::Status status = AddUp(); !status.ok()) return status;
  }
  result_.end = absl::Now();
  return absl::OkStatus();
}

absl::Status GradientSum::AddUp() {
  for (size_t end = sum_.size(); end > 0;) {
    const size_t begin = end - std::min(end, options_.bucket_values);
    const std::span<float> bucket = std::span(sum_).subspan(begin, end - begin);
    FillBucket(begin, bucket);
    const absl::Time leaving = absl::Now();
    if (result_.begin == absl::Time()) result_.begin = leaving;
    if (absl::Status status = collective_.Sum(bucket); !status.ok()) return status;
    result_.busy += absl::Now() - leaving;
    end = begin;
  }
  return absl::OkStatus();
}

void GradientSum::FillBucket(size_t begin, std::span<float> bucket) {
  if (!feed_->AwaitFinal(begin)) {
    std::ranges::fill(bucket, 0.0f);
    return;
  }
  const float weight = static_cast<float>(share_.examples) * feed_->seal().clip;
  const std::span<const float> own = share_.gradient.subspan(begin, bucket.size());
  std::ranges::transform(own, bucket.begin(), [weight](float g) { return weight * g; });
}

}  // namespace slipstream
