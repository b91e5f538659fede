#include "server/data_plane/transfer_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/duration_text.h"
#include "server/listen/end_call.h"

namespace slipstream {
namespace {

constexpr absl::Duration kFirstByteTime = absl::Seconds(30);
constexpr double kBytesPerSecondMin = 128 << 10;

// The time between two looks, which is short beside any window.
constexpr auto kInterval = std::chrono::milliseconds(500);

}  // namespace

absl::Duration TransferWatch::Options::WindowFor(size_t bytes) {
  return kFirstByteTime + absl::Seconds(static_cast<double>(bytes) / kBytesPerSecondMin);
}

TransferWatch::TransferWatch(const Options& options)
    : options_(options), thread_([this] { Run(); }) {}

TransferWatch::~TransferWatch() {
  {
    MutexLock lock(mutex_);
    PS_CHECK(transfers_.empty());
    is_stopping_ = true;
  }
  woken_.NotifyAll();
  thread_.join();
}

void TransferWatch::Run() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      const auto next = std::chrono::steady_clock::now() + kInterval;
      while (!is_stopping_ && !is_look_due_ && woken_.WaitUntil(mutex_, next)) {
      }
      if (is_stopping_) return;
      is_look_due_ = false;
    }
    EndStalled();
  }
}

void TransferWatch::EndStalled() {
  std::vector<std::pair<grpc_call*, absl::Status>> ended;
  const bool others_wait = options_.others_wait();
  {
    MutexLock lock(mutex_);
    const absl::Time now = options_.now();
    for (Transfer* const transfer : transfers_) {
      const absl::Status status = WhyEnded(*transfer, now, others_wait);
      if (status.ok()) continue;
      transfer->is_awaited_ = false;  // Each transfer is ended once.
      transfer->ends_.reset();
      transfer->ended_by_ = absl::OkStatus();
      grpc_call_ref(transfer->call_);
      ended.emplace_back(transfer->call_, status);
    }
  }
  for (const auto& [call, status] : ended) {
    EndCall(call, std::string(status.message()), spdlog::level::warn,
            static_cast<grpc_status_code>(status.raw_code()));
    grpc_call_unref(call);
  }
}

absl::Status TransferWatch::WhyEnded(Transfer& transfer, absl::Time now, bool others_wait) {
  if (!transfer.ended_by_.ok()) return transfer.ended_by_;
  if (IsStalled(transfer, now)) {
    return absl::UnavailableError(fmt::format("STALLED: the {} moved less than {} bytes in {}",
                                              transfer.name_, options_.bytes_min,
                                              DurationText(options_.window)));
  }
  if (!others_wait || !transfer.ends_.has_value() || now < *transfer.ends_) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      fmt::format("OVERTAKEN: others wait for a place, and the {} is slow", transfer.name_));
}

bool TransferWatch::IsStalled(Transfer& transfer, absl::Time now) {
  if (!transfer.is_awaited_) return false;
  const bool goes_on = transfer.moved_ >= options_.bytes_min;
  if (goes_on || !transfer.window_begin_.has_value()) {
    transfer.window_begin_ = now;
    transfer.moved_ = 0;
    return false;
  }
  return now - *transfer.window_begin_ >= options_.window;
}

TransferWatch::Transfer::Transfer(TransferWatch& watch, grpc_call* call, std::string name)
    : watch_(watch), call_(call), name_(std::move(name)) {
  MutexLock lock(watch_.mutex_);
  place_ = watch_.transfers_.insert(watch_.transfers_.end(), this);
}

TransferWatch::Transfer::~Transfer() {
  MutexLock lock(watch_.mutex_);
  watch_.transfers_.erase(place_);
}

void TransferWatch::Transfer::Await(size_t moved) {
  MutexLock lock(watch_.mutex_);
  if (!is_awaited_) {
    window_begin_.reset();
    moved_ = 0;
  }
  is_awaited_ = true;
  moved_ += moved;
}

void TransferWatch::Transfer::EndAfter(absl::Duration time) {
  MutexLock lock(watch_.mutex_);
  ends_ = watch_.options_.now() + time;
}

void TransferWatch::Transfer::End(const absl::Status& status) {
  {
    MutexLock lock(watch_.mutex_);
    ended_by_ = status;
    watch_.is_look_due_ = true;
  }
  watch_.woken_.NotifyAll();
}

void TransferWatch::Transfer::Rest() {
  MutexLock lock(watch_.mutex_);
  is_awaited_ = false;
}

}  // namespace slipstream
