#include "server/core/coordinator/readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <tuple>

namespace slipstream {
namespace {

/// Checks a text that stands in log lines and tables beside others.
absl::Status CheckText(std::string_view field, std::string_view text) {
  if (text.size() > Readers::kTextBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("{}: at most {} bytes, not {}", field, Readers::kTextBytesMax, text.size()));
  }
  const bool is_visible = std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
  if (is_visible) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{}: visible ASCII characters alone", field));
}

absl::Status CheckReport(const ReaderReport& report) {
  if (report.instance == 0) return absl::InvalidArgumentError("instance: missing");
  if (absl::Status status = CheckText("host", report.host); !status.ok()) return status;
  if (absl::Status status = CheckText("name", report.name); !status.ok()) return status;
  if (std::isfinite(report.bytes_per_second) && report.bytes_per_second >= 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("bytes_per_second: not a rate");
}

}  // namespace

absl::StatusOr<uint64_t> Readers::OnReport(const ReaderReport& report, absl::Time now) {
  if (absl::Status status = CheckReport(report); !status.ok()) return status;
  if (are_awaited_ && report.lag_max == 0) {
    return absl::InvalidArgumentError(
        "lag_max: at least 1 where workers wait for readers (readers.on_lag), or none");
  }
  const auto known = numbers_.find(report.instance);
  if (report.leaves) {
    if (known == numbers_.end()) return next_;
    const uint64_t number = known->second;
    readers_.erase(number);
    numbers_.erase(known);
    return number;
  }
  if (known == numbers_.end()) {
    if (absl::Status status = MakePlace(report.address); !status.ok()) return status;
  }
  const uint64_t number = known != numbers_.end() ? known->second : next_++;
  numbers_[report.instance] = number;
  Reader& reader = readers_.try_emplace(number, Reader{.newest_before = newest_}).first->second;
  const bool holds_another = reader.report.held != report.held;
  reader.report = report;
  reader.last_heard = now;
  reader.is_live = true;
  if (holds_another) reader.behind_since.reset();
  NoteLag(reader, now);
  return number;
}

void Readers::OnNewest(Version version, absl::Time now) {
  if (version <= newest_) return;
  newest_ = version;
  for (auto& [_, reader] : readers_) NoteLag(reader, now);
}

void Readers::NoteLag(Reader& reader, absl::Time now) const {
  if (LagOf(reader) == 0) {
    reader.behind_since.reset();
  } else if (!reader.behind_since.has_value()) {
    reader.behind_since = now;
  }
}

uint64_t Readers::LagOf(const Reader& reader) const {
  if (!reader.report.held.has_value()) return 0;
  const Version newest = std::max(newest_, reader.report.newest);
  return Value(newest) - std::min(Value(newest), Value(*reader.report.held));
}

LagLimits Readers::Awaited() const {
  LagLimits awaited;
  for (const auto& [_, reader] : readers_) {
    if (!are_awaited_ || !reader.is_live || !reader.report.lag_max.has_value()) continue;
    awaited.emplace(reader.report.instance, *reader.report.lag_max);
  }
  return awaited;
}

bool Readers::IsAwaited(const Reader& reader) const {
  if (!are_awaited_ || !reader.is_live || !reader.report.lag_max.has_value()) return false;
  const Version held = reader.report.held.value_or(reader.newest_before);
  return Value(newest_) - std::min(Value(newest_), Value(held)) >= *reader.report.lag_max;
}

bool Readers::any_live() const {
  return std::ranges::any_of(readers_, [](const auto& entry) { return entry.second.is_live; });
}

void Readers::Tick(absl::Time now) {
  for (auto& [_, reader] : readers_) reader.is_live = now - reader.last_heard <= lease_;
  std::erase_if(readers_, [&](const auto& entry) {
    const Reader& reader = entry.second;
    const bool is_forgotten = now - reader.last_heard > lease_ + kGoneListed;
    if (is_forgotten) numbers_.erase(reader.report.instance);
    return is_forgotten;
  });
}

absl::Status Readers::MakePlace(const std::string& address) {
  if (readers_.size() >= kReadersMax && !ForgetOneThatIsGone("")) {
    return absl::ResourceExhaustedError(
        fmt::format("{} readers are there already, which is the most", kReadersMax));
  }
  if (address.empty() || readers_.size() < kReadersOfAddressMax) return absl::OkStatus();
  const auto here = std::ranges::count_if(
      readers_, [&](const auto& entry) { return entry.second.report.address == address; });
  if (static_cast<size_t>(here) < kReadersOfAddressMax || ForgetOneThatIsGone(address)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(fmt::format(
      "{} readers from this address are there already, which is the most", kReadersOfAddressMax));
}

std::vector<uint64_t> Readers::MostBehind(size_t count) const {
  std::vector<std::tuple<bool, uint64_t, uint64_t>> all;  // Live ones first, then large lags.
  all.reserve(readers_.size());
  for (const auto& [number, reader] : readers_) {
    all.emplace_back(!reader.is_live, std::numeric_limits<uint64_t>::max() - LagOf(reader), number);
  }
  count = std::min(count, all.size());
  std::ranges::partial_sort(all, all.begin() + static_cast<ptrdiff_t>(count));
  std::vector<uint64_t> numbers;
  numbers.reserve(count);
  for (size_t i = 0; i < count; ++i) numbers.push_back(std::get<2>(all[i]));
  std::ranges::sort(numbers);
  return numbers;
}

bool Readers::ForgetOneThatIsGone(const std::string& address) {
  const auto gone = std::ranges::find_if(readers_, [&](const auto& entry) {
    const bool is_meant = address.empty() || entry.second.report.address == address;
    return is_meant && !entry.second.is_live;
  });
  if (gone == readers_.end()) return false;
  numbers_.erase(gone->second.report.instance);
  readers_.erase(gone);
  return true;
}

void Readers::Forgive(absl::Duration gap) {
  for (auto& [_, reader] : readers_) reader.last_heard += gap;
}

}  // namespace slipstream
