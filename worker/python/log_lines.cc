#include "worker/python/log_lines.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

namespace slipstream {
namespace {

constexpr size_t kLinesMax = 1000;

int PythonLevel(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return 10;
    case spdlog::level::info:
      return 20;
    case spdlog::level::warn:
      return 30;
    default:
      return 40;
  }
}

class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::vector<LoggedLine> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<LoggedLine> taken(std::make_move_iterator(lines_.begin()),
                                  std::make_move_iterator(lines_.end()));
    lines_.clear();
    return taken;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (lines_.size() == kLinesMax) lines_.pop_front();
    lines_.push_back(
        {PythonLevel(message.level), std::string(message.payload.data(), message.payload.size())});
  }
  void flush_() override {}

  std::deque<LoggedLine> lines_;  // Guarded by the base's mutex.
};

const std::shared_ptr<LineSink>& Sink() {
  static const auto& sink = *new std::shared_ptr<LineSink>(std::make_shared<LineSink>());
  return sink;
}

}  // namespace

void KeepLogLines() {
  auto logger = std::make_shared<spdlog::logger>("slipstream", Sink());
  logger->set_level(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

std::vector<LoggedLine> TakeLogLines() { return Sink()->Take(); }

}  // namespace slipstream
