#include "server/data_plane/shard_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "common/kernels/segments.h"

namespace slipstream {
namespace {

// The bytes at which a batch is long enough. Longer ones do not make a disk faster, and whoever
// reads the log holds a whole batch in memory.
constexpr size_t kBatchBytes = size_t{16} << 20;

// The first byte of a record.
constexpr std::array kPiece = {std::byte{1}};
constexpr std::array kEvent = {std::byte{2}};

// How much the newest batch counts in the average of the times.
constexpr double kNewestShare = 1.0 / 32;

LogSegmentWriter::Record RecordOf(const ReceivedValues& piece) {
  LogSegmentWriter::Record record = {kPiece};
  record.insert(record.end(), piece.segments().begin(), piece.segments().end());
  return record;
}

}  // namespace

// Recording.

ShardLog::ShardLog(Options options, Disk& disk)
    : options_(std::move(options)),
      disk_(disk),
      last_segment_(options_.last_segment),
      thread_([this] { Run(); }) {}

ShardLog::~ShardLog() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  changed_.NotifyAll();
  AwaitEnd();
  thread_.join();
}

void ShardLog::AwaitEnd() {
  {
    MutexLock lock(mutex_);
    while (!has_ended_ && !has_failed_ && !IsStuck()) changed_.WaitUntil(mutex_, WriteEnd());
    if (has_ended_ || !IsStuck()) return;
  }
  GiveUpWrite();
}

size_t ShardLog::Entry::bytes() const {
  size_t bytes = event.event.size();
  for (const auto& piece : event.payload) bytes += TotalBytes(piece->segments());
  return bytes;
}

void ShardLog::Record(std::string event,
                      std::vector<std::shared_ptr<const ReceivedValues>> payload) {
  MutexLock lock(mutex_);
  if (!has_begun_) return;
  Add({.event = {std::move(event), std::move(payload)}});
  WakeIfDue();
}

uint64_t ShardLog::BeginSegment() {
  MutexLock lock(mutex_);
  has_begun_ = true;
  const uint64_t number = ++last_segment_;
  Add({.begins_segment = number});
  NoteNeed(recorded_);
  return number;
}

void ShardLog::Need(uint64_t events) {
  MutexLock lock(mutex_);
  NoteNeed(events);
}

void ShardLog::NoteNeed(uint64_t events) {
  needed_ = std::max(needed_, events);
  WakeIfDue();
}

void ShardLog::WakeIfDue() {
  if (due_since_.has_value() || !IsDue()) return;
  due_since_ = Clock::now();
  changed_.NotifyAll();
}

bool ShardLog::IsDue() const {
  if (pending_.empty()) return false;
  return needed_ > recorded_ - pending_.size() || pending_bytes_ >= kBytesWorthASync;
}

void ShardLog::Add(Entry entry) {
  ++recorded_;
  if (has_failed_) return;
  entry.recorded_at = Clock::now();
  const size_t bytes = entry.bytes();
  bytes_waiting_ += bytes;
  pending_bytes_ += bytes;
  pending_.push_back(std::move(entry));
}

uint64_t ShardLog::recorded() const {
  MutexLock lock(mutex_);
  return recorded_;
}

uint64_t ShardLog::synced() const {
  MutexLock lock(mutex_);
  return synced_;
}

uint64_t ShardLog::bytes_waiting() const {
  MutexLock lock(mutex_);
  return bytes_waiting_;
}

ShardLog::Wait ShardLog::AwaitSynced(uint64_t events, Clock::time_point end) {
  {
    MutexLock lock(mutex_);
    NoteNeed(events);
    while (synced_ < events && !has_failed_ && !IsStuck() && Clock::now() < end) {
      changed_.WaitUntil(mutex_, std::min(end, WriteEnd()));
    }
    if (synced_ >= events) return Wait::kSynced;
    if (has_failed_) return Wait::kFailed;
    if (!IsStuck()) return Wait::kLate;
  }
  GiveUpWrite();
  return Wait::kFailed;
}

void ShardLog::GiveUpWrite() {
  uint64_t segment = 0;
  {
    MutexLock lock(mutex_);
    segment = written_segment_;
  }
  Fail(absl::DataLossError(fmt::format(
      "{}: a write takes longer than {} seconds", SegmentPath(options_.directory, segment),
      std::chrono::duration<double>(options_.write_time_max).count())));
}

void ShardLog::Describe(v1::ShardStatus& status) const {
  MutexLock lock(mutex_);
  *status.mutable_log() = written_;
  sync_times_.Describe(*status.mutable_log()->mutable_sync_times());
}

// Writing.

void ShardLog::Run() {
  while (true) {
    std::vector<Entry> batch;
    {
      MutexLock lock(mutex_);
      while (!due_since_.has_value() && !is_stopping_) changed_.Wait(mutex_);
      if (pending_.empty()) break;
      batch = TakeBatch();
    }
    if (const absl::Status written = Write(batch); !written.ok()) return Fail(written);
    const std::optional<uint64_t> synced = NoteSynced(std::move(batch));
    if (!synced.has_value()) return;
    options_.on_synced(*synced);
  }
  Close();
}

void ShardLog::Close() {
  if (segment_.has_value()) {
    {
      MutexLock lock(mutex_);
      write_begun_ = Clock::now();
    }
    if (const absl::Status closed = segment_->Close(); !closed.ok()) Fail(closed);
  }
  {
    MutexLock lock(mutex_);
    has_ended_ = true;
  }
  changed_.NotifyAll();
}

std::vector<ShardLog::Entry> ShardLog::TakeBatch() {
  std::vector<Entry> batch;
  size_t bytes = 0;
  while (!pending_.empty() && bytes < kBatchBytes) {
    const bool begins_segment = pending_.front().begins_segment > 0;
    if (begins_segment && !batch.empty()) break;
    bytes += pending_.front().bytes();
    batch.push_back(std::move(pending_.front()));
    pending_.pop_front();
  }
  pending_bytes_ -= bytes;
  write_begun_ = Clock::now();
  write_due_ = std::max(batch.front().recorded_at, due_since_.value_or(*write_begun_));
  if (!IsDue()) due_since_.reset();
  if (batch.front().begins_segment > 0) written_segment_ = batch.front().begins_segment;
  return batch;
}

absl::Status ShardLog::Write(const std::vector<Entry>& batch) {
  std::vector<LogSegmentWriter::Record> records;
  for (const Entry& entry : batch) {
    if (entry.begins_segment > 0) {
      if (absl::Status begun = BeginSegmentNow(entry.begins_segment); !begun.ok()) return begun;
      continue;
    }
    AddRecords(entry.event, records);
  }
  return records.empty() ? absl::OkStatus() : segment_->Append(records);
}

absl::Status ShardLog::BeginSegmentNow(uint64_t number) {
  if (segment_.has_value()) {
    if (absl::Status closed = segment_->Close(); !closed.ok()) return closed;
    closed_bytes_ += segment_->bytes();
    segment_.reset();
  }
  absl::StatusOr<LogSegmentWriter> next =
      LogSegmentWriter::Create(disk_, options_.directory, number);
  if (!next.ok()) return next.status();
  segment_.emplace(*std::move(next));
  return absl::OkStatus();
}

std::optional<uint64_t> ShardLog::NoteSynced(std::vector<Entry> batch) {
  const auto is_event = [](const Entry& entry) { return entry.begins_segment == 0; };
  const auto events = static_cast<uint64_t>(std::ranges::count_if(batch, is_event));
  uint64_t bytes = 0;
  for (const Entry& entry : batch) bytes += entry.bytes();
  uint64_t synced = 0;
  {
    MutexLock lock(mutex_);
    // Somebody has given up this write, so nobody may be told of it.
    if (has_failed_) return std::nullopt;
    write_begun_.reset();
    const std::chrono::duration<double> seconds = Clock::now() - write_due_;
    bytes_waiting_ -= bytes;
    synced_ += batch.size();
    synced = synced_;
    const double share = written_.batches() == 0 ? 1.0 : kNewestShare;
    written_.set_batch_seconds(written_.batch_seconds() +
                               share * (seconds.count() - written_.batch_seconds()));
    sync_times_.Add(absl::FromChrono(Clock::now() - write_due_));
    written_.set_bytes(closed_bytes_ + segment_->bytes());
    written_.set_events(written_.events() + events);
    written_.set_batches(written_.batches() + 1);
  }
  changed_.NotifyAll();
  return synced;
}

void ShardLog::Fail(const absl::Status& failure) {
  {
    MutexLock lock(mutex_);
    if (has_failed_) return;
    has_failed_ = true;
    pending_.clear();
  }
  changed_.NotifyAll();
  options_.on_failure(failure);
}

// The records of an event.

void AddRecords(const EventsOfLog::Event& event, std::vector<LogSegmentWriter::Record>& records) {
  for (const auto& piece : event.payload) records.push_back(RecordOf(*piece));
  records.push_back({kEvent, std::as_bytes(std::span(event.event))});
}

absl::StatusOr<std::optional<EventsOfLog::Event>> EventsOfLog::Add(
    std::span<const std::byte> record) {
  if (record.empty()) return absl::DataLossError("a record without a kind");
  const std::span<const std::byte> rest = record.subspan(1);
  if (record.front() == kPiece.front()) {
    if (rest.size() % sizeof(float) != 0) {
      return absl::DataLossError("a piece of a payload that is not made of whole values");
    }
    ReceivedValues::Buffer piece = ReceivedValues::MakeBuffer(rest.size() / sizeof(float));
    std::ranges::copy(rest, std::as_writable_bytes(piece.to).begin());
    payload_.push_back(std::make_shared<const ReceivedValues>(std::move(piece.values)));
    return std::nullopt;
  }
  if (record.front() != kEvent.front()) return absl::DataLossError("a record of an unknown kind");
  Event event = {.payload = std::exchange(payload_, {})};
  event.event.resize(rest.size());
  std::memcpy(event.event.data(), rest.data(), rest.size());
  return event;
}

}  // namespace slipstream
