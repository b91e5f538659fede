#include "common/log/log_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "common/files/file_descriptor.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

/// A logger whose lines go into a pipe.
class LogSinkTest : public testing::Test {
 protected:
  LogSinkTest() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe(ends), 0);
    read_ = FileDescriptor(ends[0]);
    write_ = FileDescriptor(ends[1]);
    logger_.emplace("test", std::make_shared<LogSink>(write_.get()));
    logger_->set_pattern("%v");
    logger_->set_level(spdlog::level::trace);
  }

  /// Reads what has been written, and what is while this reads.
  std::string ReadAll(int patience_ms) {
    std::string all;
    pollfd readable = {.fd = read_.get(), .events = POLLIN, .revents = 0};
    while (poll(&readable, 1, patience_ms) == 1) {
      char part[1 << 16];
      const ssize_t size = read(read_.get(), part, sizeof(part));
      if (size <= 0) break;
      all.append(part, static_cast<size_t>(size));
    }
    return all;
  }

  FileDescriptor read_;
  FileDescriptor write_;
  std::optional<spdlog::logger> logger_;
};

TEST_F(LogSinkTest, ALineIsWrittenWhenTheCallReturns) {
  logger_->info("first");
  EXPECT_EQ(ReadAll(0), "first\n");
  logger_->info("second");
  EXPECT_EQ(ReadAll(0), "second\n");
}

TEST_F(LogSinkTest, ALogThatNobodyReadsStopsNobodyAndSaysWhatItLost) {
  const std::string line(1000, 'x');
  const size_t lines = 3 * LogSink::kBytesMax / line.size();
  for (size_t i = 0; i < lines; ++i) logger_->debug(line);  // Would not return.

  const std::string all = ReadAll(200);
  EXPECT_LE(all.size(), LogSink::kBytesMax + (128 << 10));
  EXPECT_GE(all.size(), LogSink::kBytesMax / 2);
  const auto kept = static_cast<size_t>(std::ranges::count(all, '\n'));
  logger_->info("somebody reads again");
  EXPECT_EQ(ReadAll(0), "left out lines that nobody took from the log lines=" +
                            std::to_string(lines - kept) + "\nsomebody reads again\n");
}

TEST_F(LogSinkTest, TheEndOfAProcessDoesNotWaitForAReader) {
  for (int i = 0; i < 200; ++i) logger_->debug(std::string(1000, 'x'));
  logger_.reset();  // Would not return.
  // Something may still be written, so no other file is to get these numbers.
  (void)read_.Release();
  (void)write_.Release();
}

TEST_F(LogSinkTest, ALineThatComesTooOftenHidesNoOther) {
  for (int i = 0; i < 2000; ++i) logger_->warn("the same");
  logger_->warn("another");

  const std::string all = ReadAll(0);
  EXPECT_THAT(all, HasSubstr("another\n"));
  const auto lines = static_cast<double>(std::ranges::count(all, '\n'));
  EXPECT_GE(lines, LogSink::kLinesAtOnce);
  EXPECT_LE(lines, 2 * LogSink::kLinesAtOnce);
}

}  // namespace
}  // namespace slipstream
