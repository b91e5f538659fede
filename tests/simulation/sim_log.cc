#include "tests/simulation/sim_log.h"

#include <utility>

#include "absl/status/statusor.h"

namespace slipstream {

SimLog::SimLog(const Options& options, const std::shared_ptr<Process>& process, EventQueue& queue,
               SimDisk& disk)
    : options_(options),
      process_(process),
      queue_(queue),
      disk_(disk),
      chance_(options.seed, options.stream),
      last_segment_(options.last_segment),
      events_(options.events_before),
      open_segment_(options.last_segment) {}

void SimLog::Record(std::string event, std::vector<std::shared_ptr<const ReceivedValues>> payload) {
  if (last_segment_ == options_.last_segment) return;
  ++events_;
  Add({.event = {std::move(event), std::move(payload)}});
}

uint64_t SimLog::BeginSegment() {
  ++last_segment_;
  disk_.segment_begins[last_segment_] = events_;
  Add({.begins_segment = last_segment_});
  return last_segment_;
}

void SimLog::Add(Entry entry) {
  ++entries_;
  waiting_.push_back(std::move(entry));
  WriteIfNeeded();
}

void SimLog::WriteIfNeeded() {
  const bool is_needed = has_new_segment() || !effects_.empty();
  if (is_needed && !is_writing_ && !waiting_.empty()) Write();
}

void SimLog::Write() {
  is_writing_ = true;
  batch_.clear();
  while (!waiting_.empty() && (batch_.empty() || waiting_.front().begins_segment == 0)) {
    batch_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  queue_.After(chance_.Time(absl::Microseconds(10), options_.time_max), [this] { OnTime(); });
}

void SimLog::OnTime() {
  if (process_->is_dead) return;
  const absl::Status written = WriteBatch();
  is_writing_ = false;
  // Nothing is written any more then.
  if (!written.ok()) return options_.on_failure(written);
  const uint64_t synced = effects_.written() + batch_.size();
  for (const Entry& entry : batch_) disk_.events_synced += entry.begins_segment == 0 ? 1 : 0;
  effects_.Release(synced);
  WriteIfNeeded();
}

absl::Status SimLog::WriteBatch() {
  std::vector<LogSegmentWriter::Record> records;
  for (const Entry& entry : batch_) {
    if (entry.begins_segment == 0) {
      AddRecords(entry.event, records);
    } else if (absl::Status begun = BeginSegmentNow(entry.begins_segment); !begun.ok()) {
      return begun;
    }
  }
  return records.empty() ? absl::OkStatus() : writer_->Append(records);
}

absl::Status SimLog::BeginSegmentNow(uint64_t number) {
  if (writer_.has_value()) {
    if (absl::Status closed = writer_->Close(); !closed.ok()) return closed;
  }
  absl::StatusOr<LogSegmentWriter> created =
      LogSegmentWriter::Create(disk_.files, options_.directory, number);
  if (!created.ok()) return created.status();
  writer_.emplace(*std::move(created));
  open_segment_ = number;
  return absl::OkStatus();
}

void SimLog::End() {
  if (is_writing_) (void)WriteBatch();
  writer_.reset();
  batch_.clear();
  waiting_.clear();
  effects_.Lose();
}

}  // namespace slipstream
