#include "server/core/coordinator/work_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace slipstream {

WorkLedger::WorkLedger(uint64_t end, uint64_t per_epoch, Pushes pushes)
    : per_epoch_(per_epoch), pushes_(pushes), end_(end) {
  PS_CHECK(per_epoch > 0 && pushes.batches > 0 && pushes.in_flight > 0);
}

void WorkLedger::BeginAt(uint64_t begin) {
  PS_CHECK(last_unit_ == 0 && begin % per_epoch_ == 0 && begin <= end_);
  next_ = begin;
  done_ = begin;
  epochs_done_ = static_cast<uint32_t>(begin / per_epoch_);
}

void WorkLedger::ExtendTo(uint64_t end) {
  PS_CHECK(end >= end_);
  end_ = end;
}

uint64_t WorkLedger::Undone(WorkerId worker) const {
  const auto holds = held_.find(worker);
  if (holds == held_.end()) return 0;
  uint64_t undone = 0;
  for (const auto& [number, held] : holds->second) undone += held.batches - held.done;
  return undone;
}

uint64_t WorkLedger::NextSize(WorkerId worker, uint64_t workers, uint64_t wanted) const {
  const uint64_t remaining = std::min(per_epoch_ - next_ % per_epoch_, end_ - next_);
  const bool ends_work = next_ + remaining == end_;
  uint64_t most = per_epoch_ / (2 * workers);
  if (ends_work) {
    const uint64_t share = remaining / workers;
    most = share - std::min(share, Undone(worker));
  }
  const uint64_t batches =
      std::max({uint64_t{1}, remaining / (2 * workers), std::min(wanted, most)});
  const uint64_t quantum = pushes_.batches;
  return std::min(remaining, (batches + quantum - 1) / quantum * quantum);
}

std::optional<WorkLedger::Unit> WorkLedger::HandOut(WorkerId worker, uint32_t workers,
                                                    uint64_t wanted) {
  if (is_closed_) return std::nullopt;
  const auto holds = held_.find(worker);
  if (holds != held_.end() && holds->second.size() >= units_max()) return std::nullopt;

  Unit unit;
  if (!returned_.empty()) {
    unit.first = returned_.begin()->first;
    unit.batches = returned_.begin()->second;
    returned_.erase(returned_.begin());
  } else if (next_ < end_) {
    unit.first = next_;
    unit.batches = NextSize(worker, std::max(1u, workers), wanted);
    next_ += unit.batches;
  } else {
    return std::nullopt;
  }
  unit.number = ++last_unit_;
  held_[worker][unit.number] = {unit.first, unit.batches, 0};
  return unit;
}

void WorkLedger::HandOutAll(WorkerId worker) {
  PS_CHECK(last_unit_ == 0 && next_ < end_);
  held_[worker][++last_unit_] = {next_, end_ - next_, 0};
  next_ = end_;
}

std::optional<WorkLedger::Unit> WorkLedger::FindNewer(WorkerId worker, uint64_t newest) const {
  const auto holds = held_.find(worker);
  if (holds == held_.end()) return std::nullopt;
  const auto found = holds->second.upper_bound(newest);
  if (found == holds->second.end()) return std::nullopt;
  return Unit{found->first, found->second.first, found->second.batches};
}

absl::Status WorkLedger::Report(WorkerId worker, uint64_t unit, uint64_t done) {
  const auto holds = held_.find(worker);
  if (holds == held_.end()) return absl::OkStatus();
  const auto found = holds->second.find(unit);
  if (found == holds->second.end()) return absl::OkStatus();
  Held& held = found->second;
  if (done > held.batches) {
    return absl::InvalidArgumentError(fmt::format(
        "unit {} has {} mini-batches, of which {} cannot be done", unit, held.batches, done));
  }
  if (done <= held.done) return absl::OkStatus();

  Count(held.first + held.done, done - held.done);
  held.done = done;
  if (held.done == held.batches) holds->second.erase(found);
  if (holds->second.empty()) held_.erase(holds);
  return absl::OkStatus();
}

void WorkLedger::ReportUpTo(WorkerId worker, uint64_t end) {
  const auto holds = held_.find(worker);
  if (holds == held_.end()) return;
  const auto has_last = [end](const auto& unit) {
    return unit.second.first < end && end <= unit.second.first + unit.second.batches;
  };
  const auto last = std::ranges::find_if(holds->second, has_last);
  if (last == holds->second.end()) return;
  // Unit and mini-batches, collected first because Report erases units.
  std::vector<std::pair<uint64_t, uint64_t>> done;
  for (auto unit = holds->second.begin(); unit != last; ++unit) {
    done.emplace_back(unit->first, unit->second.batches);
  }
  done.emplace_back(last->first, end - last->second.first);
  for (const auto& [unit, batches] : done) PS_CHECK(Report(worker, unit, batches).ok());
}

bool WorkLedger::Release(WorkerId worker) {
  const auto holds = held_.find(worker);
  if (holds == held_.end()) return false;
  for (const auto& [number, held] : holds->second) {
    returned_[held.first + held.done] = held.batches - held.done;
  }
  held_.erase(holds);
  return true;
}

void WorkLedger::Count(uint64_t first, uint64_t batches) {
  done_ += batches;
  for (const uint64_t end = first + batches; first < end;) {
    const uint64_t of_epoch = std::min(per_epoch_ - first % per_epoch_, end - first);
    done_of_epoch_[first / per_epoch_] += of_epoch;
    first += of_epoch;
  }
  while (!done_of_epoch_.empty() && done_of_epoch_.begin()->first == epochs_done_ &&
         done_of_epoch_.begin()->second == per_epoch_) {
    done_of_epoch_.erase(done_of_epoch_.begin());
    ++epochs_done_;
  }
}

}  // namespace slipstream
