#include "server/storage/push_log_writer.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "common/base/duration_text.h"
#include "common/log/log.h"

namespace slipstream {
namespace {

std::string TooSlow() {
  return "its disk has not taken it within " + DurationText(PushLogWriter::kEndTime);
}

}  // namespace

PushLogWriter::PushLogWriter(PushLog log)
    : state_(std::make_shared<State>(std::move(log))), thread_([state = state_] { Run(*state); }) {}

PushLogWriter::~PushLogWriter() {
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(kEndTime);
  bool has_stopped = false;
  {
    MutexLock lock(state_->mutex);
    state_->is_stopping = true;
    state_->changed.NotifyAll();
    while (!state_->has_stopped && state_->changed.WaitUntil(state_->mutex, end)) {
    }
    has_stopped = state_->has_stopped;
  }
  if (has_stopped) {
    thread_.join();
  } else {
    GiveUp(*state_, TooSlow());
    thread_.detach();
  }
}

void PushLogWriter::Add(absl::Time decided, const PushHeader& header, const PushReply& reply,
                        uint32_t stage) {
  {
    MutexLock lock(state_->mutex);
    if (!state_->failure.empty()) return;
    if (state_->lines.size() < kLinesMax) {
      state_->lines.push_back({decided, header, reply, stage});
      state_->changed.NotifyAll();
      return;
    }
  }
  GiveUp(*state_, fmt::format("its disk is {} lines behind", kLinesMax));
}

std::string PushLogWriter::failure() {
  {
    MutexLock lock(state_->mutex);
    const auto end = absl::ToChronoNanoseconds(kEndTime);
    const bool hangs = state_->writes_since.has_value() &&
                       std::chrono::steady_clock::now() - *state_->writes_since > end;
    if (!hangs) return state_->failure;
  }
  GiveUp(*state_, TooSlow());
  MutexLock lock(state_->mutex);
  return state_->failure;
}

std::string PushLogWriter::Finish() {
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(kEndTime);
  {
    MutexLock lock(state_->mutex);
    const auto waits = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) {
      const bool is_behind = !state_->lines.empty() || state_->writes_since.has_value();
      return is_behind && state_->failure.empty();
    };
    while (waits() && state_->changed.WaitUntil(state_->mutex, end)) {
    }
    if (!waits()) return state_->failure;
  }
  GiveUp(*state_, TooSlow());
  return failure();
}

uint64_t PushLogWriter::pushes() {
  MutexLock lock(state_->mutex);
  return state_->pushes;
}

void PushLogWriter::Run(State& state) {
  for (;;) {
    std::vector<Line> lines;
    {
      MutexLock lock(state.mutex);
      while (state.lines.empty() && !state.is_stopping) state.changed.Wait(state.mutex);
      lines.swap(state.lines);
      if (lines.empty()) {
        state.has_stopped = true;
        state.changed.NotifyAll();
        return;
      }
      state.writes_since = std::chrono::steady_clock::now();
    }
    for (const Line& line : lines)
      state.file.Append(line.decided, line.header, line.reply, line.stage);
    const absl::Status flushed = state.file.Flush();
    if (!flushed.ok()) NoteEnd(state, std::string(flushed.message()));
    MutexLock lock(state.mutex);
    state.pushes = state.file.pushes();
    state.writes_since.reset();
    state.changed.NotifyAll();
  }
}

void PushLogWriter::GiveUp(State& state, const std::string& reason) {
  uint64_t pushes = 0;
  {
    MutexLock lock(state.mutex);
    pushes = state.pushes;
  }
  NoteEnd(state, PushLogEnd(state.path, pushes, reason));
}

void PushLogWriter::NoteEnd(State& state, const std::string& failure) {
  {
    MutexLock lock(state.mutex);
    state.lines.clear();
    if (!state.failure.empty()) return;
    state.failure = failure;
  }
  LogError(failure);
}

}  // namespace slipstream
