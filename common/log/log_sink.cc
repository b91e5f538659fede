#include "common/log/log_sink.h"

#include <poll.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/formatter.h>
#include <spdlog/pattern_formatter.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/time/clock.h"
#include "common/log/log.h"

namespace slipstream {
namespace {

/// The program's own lines have fewer words; this is for those of libraries.
constexpr size_t kKindsMax = 1000;

/// Returns the bytes that give a terminal's text the colour of a level, as spdlog has it.
std::string_view ColourOf(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::debug:
      return "\033[36m";
    case spdlog::level::info:
      return "\033[32m";
    case spdlog::level::warn:
      return "\033[33m\033[1m";
    case spdlog::level::err:
      return "\033[31m\033[1m";
    default:
      return "";
  }
}
constexpr std::string_view kNoColour = "\033[m";

std::array<std::atomic<uint64_t>, spdlog::level::n_levels> lines_by_level = {};
std::atomic<uint64_t> lines_left_out = 0;

/// Writes all of it, however long the file takes. Text that the file does not take, for instance
/// since nobody has it open any more, is lost.
void WriteTo(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = write(file, text.data(), text.size());
    if (size >= 0) {
      text.remove_prefix(static_cast<size_t>(size));
    } else if (errno == EAGAIN) {
      pollfd room = {.fd = file, .events = POLLOUT, .revents = 0};
      (void)poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

LogSink::Counts LogSink::CountsOfProcess() {
  Counts counts = {.left_out = lines_left_out};
  for (const auto level :
       {spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err}) {
    const spdlog::string_view_t name = spdlog::level::to_string_view(level);
    counts.by_level[std::string(name.data(), name.size())] = lines_by_level.at(level);
  }
  return counts;
}

LogSink::LogSink(int file)
    : has_colours_(isatty(file) == 1),
      queue_(std::make_shared<Queue>()),
      formatter_(std::make_unique<spdlog::pattern_formatter>()) {
  // Signals are for other threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([queue = queue_, file] { WriteAll(queue, file); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LogSink::~LogSink() {
  const auto deadline = std::chrono::steady_clock::now() + kPatienceAtEnd;
  MutexLock lock(queue_->mutex);
  queue_->is_closed = true;
  queue_->changed.NotifyAll();
  while (queue_->written < queue_->accepted && queue_->changed.WaitUntil(queue_->mutex, deadline)) {
  }
}

void LogSink::WriteAll(const std::shared_ptr<Queue>& queue, int file) {
  for (;;) {
    std::string text;
    {
      MutexLock lock(queue->mutex);
      while (queue->text.empty() && !queue->is_closed) queue->changed.Wait(queue->mutex);
      if (queue->text.empty()) return;
      text = std::exchange(queue->text, std::string());
    }
    WriteTo(file, text);
    MutexLock lock(queue->mutex);
    queue->written += text.size();
    queue->is_behind = queue->is_behind && queue->written < queue->accepted;
    queue->changed.NotifyAll();
  }
}

void LogSink::log(const spdlog::details::log_msg& message) {
  uint64_t awaited = 0;
  {
    MutexLock lock(mutex_);
    const LogLine* const line = LineBeingLogged();
    std::string words =
        line != nullptr ? line->text : std::string(message.payload.data(), message.payload.size());
    std::string text;
    if (message.level > spdlog::level::debug) {
      if (allowances_.size() >= kKindsMax && !allowances_.contains(words)) words = "other lines";
      Allowance& allowance =
          allowances_.try_emplace(words, kLinesAtOnce, kLinesPerSecond).first->second;
      const std::optional<uint64_t> left_out = allowance.Take(absl::Now());
      if (!left_out.has_value()) {
        ++lines_left_out;
        return;
      }
      if (*left_out > 0) {
        text = Format(message, LogLine("left out lines that came too often",
                                       {{"like", words}, {"lines", *left_out}}));
      }
    }
    text += Format(message);
    MutexLock queue_lock(queue_->mutex);
    if (queue_->left_out > 0) {
      text = Format(message, LogLine("left out lines that nobody took from the log",
                                     {{"lines", queue_->left_out}})) +
             text;
    }
    if (queue_->text.size() + text.size() > kBytesMax) {
      ++queue_->left_out;
      ++lines_left_out;
      return;
    }
    queue_->left_out = 0;
    ++lines_by_level.at(message.level);
    queue_->text += text;
    awaited = queue_->accepted += text.size();
    queue_->changed.NotifyAll();
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  MutexLock lock(queue_->mutex);
  while (queue_->written < awaited && !queue_->is_behind) {
    const bool is_late = !queue_->changed.WaitUntil(queue_->mutex, deadline);
    if (is_late && queue_->written < awaited) queue_->is_behind = true;
  }
}

std::string LogSink::Format(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t buffer;
  formatter_->format(message, buffer);
  std::string text(buffer.data(), buffer.size());
  if (has_colours_ && message.color_range_end > message.color_range_start) {
    text.insert(message.color_range_end, kNoColour);
    text.insert(message.color_range_start, ColourOf(message.level));
  }
  return text;
}

std::string LogSink::Format(const spdlog::details::log_msg& like, const LogLine& line) {
  const std::string payload = TextOf(line);
  spdlog::details::log_msg message = like;
  message.level = spdlog::level::warn;
  message.payload = payload;
  const BeingLogged scope(line);
  return Format(message);
}

void LogSink::set_pattern(const std::string& pattern) {
  set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
}

void LogSink::set_formatter(std::unique_ptr<spdlog::formatter> formatter) {
  MutexLock lock(mutex_);
  formatter_ = std::move(formatter);
}

}  // namespace slipstream
