#include "worker/allreduce/gradient_sum.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/log/log.h"
#include "common/process/exit_code.h"
#include "common/settings/policy_rows.h"

namespace slipstream {
namespace {

/// How soon an interruption ends a wait. It does not wake the wait, but this is soon enough.
constexpr std::chrono::milliseconds kInterruptionSeen{100};

/// How long a wait may go on once it was interrupted.
constexpr std::chrono::seconds kAbortMax{10};

/// How long a wait for the others is normal.
constexpr std::chrono::seconds kLongWait{30};

/// The numbers that ranks add up in front of the gradient's first values. Examples are counted by
/// their digits of so many bits, whose sums a float holds exactly for all ranks that there may be.
constexpr int kDigitBits = 12;
constexpr uint32_t kDigitMask = (1u << kDigitBits) - 1;
enum Count : size_t { kLow, kMiddle, kHigh, kLeftOut, kEnds, kCounts };
static_assert(kDigitMask * uint64_t{kAllReduceWorkersMax} < (1u << 24));

}  // namespace

GradientSum::GradientSum(Collective& collective, size_t values, const Options& options,
                         std::function<bool()> interrupted)
    : collective_(collective),
      options_(options),
      interrupted_(std::move(interrupted)),
      sum_(kCounts + values),
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
  PS_CHECK(share.gradient.empty() || share.gradient.size() == sum().size());
  share_ = share;
  result_ = {};
  feed_ = std::make_unique<GradientFeed>(sum().size(), share.last_change);
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
  std::optional<std::chrono::steady_clock::time_point> interrupted_at;
  auto warns = std::chrono::steady_clock::now() + kLongWait;
  while (!outcome_.has_value()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= warns) {
      LogWarning("waiting for the other workers", {{"seconds", kLongWait.count()}});
      warns = now + kLongWait;
    }
    changed_.WaitUntil(mutex_, now + kInterruptionSeen);
    if (outcome_.has_value() || !interrupted_()) continue;
    if (!interrupted_at.has_value()) interrupted_at = now;
    collective_.Abort();
    // A send on a connection that closes at the same moment may wait on in Gloo, for an hour.
    if (now - *interrupted_at > kAbortMax) {
      LogError("ends at once, as a wait for the other workers does not end");
      std::_Exit(static_cast<int>(ExitCode::kTemporary));
    }
  }
  const bool is_consequence = interrupted_at.has_value() && !outcome_->ok();
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
  if (options_.waits_for_trailer) feed_->AwaitTrailer();
  if (absl::Status status = AddUp(); !status.ok()) return status;
  const std::span<const float> counts = std::span(sum_).first(kCounts);
  const auto digit = [&counts](Count count) { return static_cast<uint64_t>(counts[count]); };
  result_.examples =
      digit(kLow) + (digit(kMiddle) << kDigitBits) + (digit(kHigh) << (2 * kDigitBits));
  result_.ends = counts[kEnds] > 0;
  // The sums may have parts of gradients that were left out later. Now all ranks know what counts.
  if (counts[kLeftOut] > 0 && result_.examples > 0) {
    if (absl::Status status = AddUp(); !status.ok()) return status;
  }
  result_.end = absl::Now();
  return absl::OkStatus();
}

absl::Status GradientSum::AddUp() {
  for (size_t end = sum().size(); end > 0;) {
    const size_t begin = end - std::min(end, options_.bucket_values);
    FillBucket(begin, end);
    // The counts are known with the whole gradient, and travel with its first values.
    const size_t first = begin == 0 ? 0 : kCounts + begin;
    if (begin == 0) FillCounts();
    const absl::Time leaving = absl::Now();
    if (result_.begin == absl::Time()) result_.begin = leaving;
    const std::span<float> bucket = std::span(sum_).subspan(first, kCounts + end - first);
    if (absl::Status status = collective_.Sum(bucket); !status.ok()) return status;
    result_.busy += absl::Now() - leaving;
    end = begin;
  }
  return absl::OkStatus();
}

void GradientSum::FillBucket(size_t begin, size_t end) {
  const std::span<float> bucket = std::span(sum_).subspan(kCounts + begin, end - begin);
  const bool has_values = begin > 0 ? feed_->AwaitFinal(begin) : feed_->AwaitTrailer();
  if (!has_values) {
    std::ranges::fill(bucket, 0.0f);
    return;
  }
  const float weight = static_cast<float>(share_.examples) * feed_->trailer().clip;
  const std::span<const float> own = share_.gradient.subspan(begin, bucket.size());
  std::ranges::transform(own, bucket.begin(), [weight](float g) { return weight * g; });
}

void GradientSum::FillCounts() {
  const bool counts = feed_->AwaitTrailer();
  const uint32_t examples = counts ? share_.examples : 0;
  sum_[kLow] = static_cast<float>(examples & kDigitMask);
  sum_[kMiddle] = static_cast<float>(examples >> kDigitBits & kDigitMask);
  sum_[kHigh] = static_cast<float>(examples >> (2 * kDigitBits));
  sum_[kLeftOut] = !counts && !share_.gradient.empty() ? 1 : 0;
  sum_[kEnds] = share_.wants_end ? 1 : 0;
}

std::span<const float> GradientSum::sum() const { return std::span(sum_).subspan(kCounts); }

}  // namespace slipstream
