// Tests of a shard's log: what it writes, in which order, and what it tells about that.

#include "server/data_plane/shard_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/storage/log_segment.h"
#include "tests/server/data_plane/gated_disk.h"
#include "tests/support/simulated_disk.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Wait = ShardLog::Wait;
using Payload = std::vector<std::shared_ptr<const ReceivedValues>>;

constexpr char kDirectory[] = "/log";

std::chrono::steady_clock::time_point Soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(20);
}

std::shared_ptr<const ReceivedValues> Piece(const std::vector<float>& values) {
  ReceivedValues::Buffer buffer = ReceivedValues::MakeBuffer(values.size());
  std::ranges::copy(values, buffer.to.begin());
  return std::make_shared<const ReceivedValues>(std::move(buffer.values));
}

std::vector<float> ValuesOf(const Payload& payload) {
  std::vector<float> values;
  for (const auto& piece : payload) {
    for (const std::span<const std::byte> segment : piece->segments()) {
      const size_t before = values.size();
      values.resize(before + segment.size() / sizeof(float));
      std::memcpy(values.data() + before, segment.data(), segment.size());
    }
  }
  return values;
}

class ShardLogTest : public testing::Test {
 protected:
  ShardLogTest() { EXPECT_TRUE(disk_.MakeDirectories(kDirectory).ok()); }

  ShardLog::Options Options() {
    return {.directory = kDirectory,
            .on_synced = [](uint64_t) {},
            .on_failure = [this](const absl::Status& failure) { failures_.push_back(failure); }};
  }

  /// Returns the events from a segment on, each with its segment and the sum of its values.
  std::vector<std::string> Read(uint64_t first = 1) {
    std::vector<std::string> read;
    absl::StatusOr<LogReader> reader = LogReader::Open(disk_, kDirectory, first);
    EXPECT_TRUE(reader.ok()) << reader.status();
    EventsOfLog events;
    while (reader.ok()) {
      const auto record = reader->Next();
      EXPECT_TRUE(record.ok()) << record.status();
      if (!record.ok() || !record->has_value()) break;
      const auto event = events.Add(**record);
      EXPECT_TRUE(event.ok()) << event.status();
      if (!event.ok() || !event->has_value()) continue;
      read.push_back(std::to_string(reader->segment()) + ":" + (*event)->event);
      for (const float value : ValuesOf((*event)->payload)) {
        read.back() += " " + std::to_string(static_cast<int>(value));
      }
    }
    return read;
  }

  SimulatedDisk disk_;
  std::vector<absl::Status> failures_;  // To be read once the log is gone.
};

TEST_F(ShardLogTest, WritesEventsInOrderWithTheirPayloads) {
  {
    ShardLog log(Options(), disk_);
    EXPECT_EQ(log.BeginSegment(), 1u);
    log.Record("first", {});
    log.Record("push", {Piece({1, 2}), Piece({3})});
    log.Record("last", {});
    EXPECT_EQ(log.recorded(), 4u);
    EXPECT_EQ(log.AwaitSynced(4, Soon()), Wait::kSynced);
    EXPECT_EQ(log.synced(), 4u);
  }
  EXPECT_THAT(Read(), ElementsAre("1:first", "1:push 1 2 3", "1:last"));
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(ShardLogTest, DropsWhatComesBeforeTheFirstSegment) {
  {
    ShardLog log(Options(), disk_);
    log.Record("too early", {});
    EXPECT_EQ(log.recorded(), 0u);
    log.BeginSegment();
    log.Record("wanted", {});
  }
  EXPECT_THAT(Read(), ElementsAre("1:wanted"));
}

TEST_F(ShardLogTest, BeginsASegmentAtItsPlaceAmongTheEvents) {
  ShardLog::Options options = Options();
  options.last_segment = 6;
  {
    ShardLog log(options, disk_);
    EXPECT_EQ(log.BeginSegment(), 7u);
    log.Record("a", {});
    log.Record("b", {});
    EXPECT_EQ(log.BeginSegment(), 8u);
    log.Record("c", {});
    EXPECT_EQ(log.BeginSegment(), 9u);
  }
  EXPECT_THAT(Read(7), ElementsAre("7:a", "7:b", "8:c"));
  EXPECT_THAT(Read(8), ElementsAre("8:c"));
  EXPECT_THAT(Read(9), IsEmpty());
}

TEST_F(ShardLogTest, WhatComesDuringABatchIsTheNextBatch) {
  std::promise<void> is_first_written;
  std::promise<void> goes_on;
  std::vector<uint64_t> synced;
  ShardLog::Options options = Options();
  options.on_synced = [&](uint64_t events) {
    synced.push_back(events);
    if (synced.size() > 1) return;
    is_first_written.set_value();
    goes_on.get_future().wait();
  };
  v1::ShardStatus status;
  {
    ShardLog log(options, disk_);
    log.BeginSegment();
    is_first_written.get_future().wait();
    for (int i = 0; i < 100; ++i) log.Record("event", {});
    goes_on.set_value();
    EXPECT_EQ(log.AwaitSynced(101, Soon()), Wait::kSynced);
    log.Describe(status);
  }
  EXPECT_THAT(synced, ElementsAre(1u, 101u));
  EXPECT_EQ(status.log().batches(), 2u);
  EXPECT_EQ(status.log().events(), 100u);
  EXPECT_EQ(status.log().bytes(), disk_.BytesOf(SegmentPath(kDirectory, 1)).size() - kSectorBytes)
      << "all but the empty batch by which the segment was closed";
}

TEST_F(ShardLogTest, EventsThatNobodyWaitsForAreWrittenWithTheNextThatIsNeeded) {
  std::vector<uint64_t> synced;
  ShardLog::Options options = Options();
  options.on_synced = [&](uint64_t events) { synced.push_back(events); };
  {
    ShardLog log(options, disk_);
    log.BeginSegment();
    ASSERT_EQ(log.AwaitSynced(1, Soon()), Wait::kSynced);
    for (int i = 0; i < 10; ++i) log.Record("event", {Piece({1})});
    log.Need(1);
    for (int i = 0; i < 10; ++i) log.Record("event", {});
    EXPECT_EQ(log.synced(), 1u) << "what is on the disk already does not call for a batch";
    log.Need(12);
    EXPECT_EQ(log.AwaitSynced(12, Soon()), Wait::kSynced);
    log.Record("last", {});
  }
  EXPECT_THAT(synced, ElementsAre(1u, 21u, 22u)) << "the last one at the end of the log";
}

TEST_F(ShardLogTest, ManyBytesAreWrittenThoughNobodyWaitsForThem) {
  std::promise<void> is_written;
  ShardLog::Options options = Options();
  options.on_synced = [&](uint64_t events) {
    if (events == 3) is_written.set_value();
  };
  ShardLog log(options, disk_);
  log.BeginSegment();
  ASSERT_EQ(log.AwaitSynced(1, Soon()), Wait::kSynced);
  log.Record("small", {});
  log.Record("large", {Piece(std::vector<float>(ShardLog::kBytesWorthASync / sizeof(float)))});
  is_written.get_future().wait();
  EXPECT_EQ(log.bytes_waiting(), 0u);
}

TEST_F(ShardLogTest, ABatchIsBoundedAndAPushIsInOne) {
  std::promise<void> is_first_written;
  std::promise<void> goes_on;
  std::vector<uint64_t> synced;
  ShardLog::Options options = Options();
  options.on_synced = [&](uint64_t events) {
    synced.push_back(events);
    if (synced.size() > 1) return;
    is_first_written.set_value();
    goes_on.get_future().wait();
  };
  const std::shared_ptr<const ReceivedValues> piece =
      Piece(std::vector<float>((size_t{9} << 20) / sizeof(float)));
  {
    ShardLog log(options, disk_);
    log.BeginSegment();
    is_first_written.get_future().wait();
    log.Record("large", {piece, piece});
    log.Record("small", {});
    log.Record("small", {});
    goes_on.set_value();
  }
  EXPECT_THAT(synced, ElementsAre(1u, 2u, 4u));
}

TEST_F(ShardLogTest, WritesNothingAfterAFailureAndSaysSo) {
  uint64_t last_synced = 0;
  ShardLog::Options options = Options();
  options.on_synced = [&](uint64_t events) { last_synced = events; };
  {
    ShardLog log(options, disk_);
    log.BeginSegment();
    log.Record("there", {});
    ASSERT_EQ(log.AwaitSynced(2, Soon()), Wait::kSynced);
    disk_.FailCall(1);
    log.Record("lost", {});
    EXPECT_EQ(log.AwaitSynced(3, Soon()), Wait::kFailed);
    log.Record("after it", {});
    EXPECT_EQ(log.AwaitSynced(4, Soon()), Wait::kFailed);
    EXPECT_EQ(log.synced(), 2u);
    EXPECT_EQ(log.recorded(), 4u);
  }
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_THAT(std::string(failures_.front().message()), HasSubstr(SegmentPath(kDirectory, 1)));
  EXPECT_EQ(last_synced, 2u);
  disk_.Crash();
  EXPECT_THAT(Read(), ElementsAre("1:there"));
}

/// A log on a disk that nobody can sync to.
class StuckLogTest : public ShardLogTest {
 protected:
  StuckLogTest() {
    EXPECT_TRUE(gated_.MakeDirectories(kDirectory).ok());
    gated_.Close("/log-");
  }

  GatedDisk gated_;
};

TEST_F(StuckLogTest, AWriteThatTakesTooLongIsAFailureThatIsToldOnce) {
  ShardLog::Options options = Options();
  options.write_time_max = std::chrono::milliseconds(1);
  uint64_t last_synced = 0;
  options.on_synced = [&](uint64_t events) { last_synced = events; };
  {
    ShardLog log(options, gated_);
    log.BeginSegment();
    EXPECT_EQ(log.AwaitSynced(1, Soon()), Wait::kFailed);
    EXPECT_EQ(log.AwaitSynced(1, Soon()), Wait::kFailed);
    gated_.Open();
  }
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_THAT(std::string(failures_.front().message()), HasSubstr(SegmentPath(kDirectory, 1)));
  EXPECT_EQ(last_synced, 0u) << "nobody may be told of what was given up";
}

TEST_F(StuckLogTest, WhatIsLateIsNoFailure) {
  {
    ShardLog log(Options(), gated_);
    log.BeginSegment();
    EXPECT_EQ(log.AwaitSynced(1, std::chrono::steady_clock::now()), Wait::kLate);
    gated_.Open();
    EXPECT_EQ(log.AwaitSynced(1, Soon()), Wait::kSynced);
  }
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(StuckLogTest, TheEndOfALogDoesNotWaitForeverInSilence) {
  ShardLog::Options options = Options();
  options.write_time_max = std::chrono::milliseconds(1);
  options.on_failure = [this](const absl::Status& failure) {
    failures_.push_back(failure);
    gated_.Open();
  };
  {
    ShardLog log(options, gated_);
    log.BeginSegment();
  }
  EXPECT_EQ(failures_.size(), 1u);
}

TEST_F(StuckLogTest, CountsTheBytesThatAreNotOnTheDisk) {
  ShardLog log(Options(), gated_);
  log.BeginSegment();
  gated_.AwaitSomebody();
  log.Record("four", {Piece({1, 2}), Piece({3})});
  log.Record("12", {});
  EXPECT_EQ(log.bytes_waiting(), 4 + 3 * sizeof(float) + 2);
  gated_.Open();
  EXPECT_EQ(log.AwaitSynced(3, Soon()), Wait::kSynced);
  EXPECT_EQ(log.bytes_waiting(), 0u);
}

TEST_F(ShardLogTest, ASegmentThatCannotBeMadeIsAFailure) {
  {
    ShardLog log(Options(), disk_);
    disk_.FailCall(1);
    log.BeginSegment();
    EXPECT_EQ(log.AwaitSynced(1, Soon()), Wait::kFailed);
  }
  EXPECT_EQ(failures_.size(), 1u);
}

TEST_F(ShardLogTest, WhatIsSyncedSurvivesACrash) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    disk_ = SimulatedDisk();
    ASSERT_TRUE(disk_.MakeDirectories(kDirectory).ok());
    {
      ShardLog log(Options(), disk_);
      log.BeginSegment();
      log.Record("one", {Piece({1, 2, 3})});
      log.Record("two", {});
      ASSERT_EQ(log.AwaitSynced(3, Soon()), Wait::kSynced);
      disk_.StopAtCall(1 + seed % 3);
      log.Record("never told", {Piece(std::vector<float>(1000, 4.0f))});
    }
    disk_.Crash(seed);
    std::vector<std::string> read = Read();
    if (read.size() > 2) read.pop_back();  // It may be there, but nobody was told.
    EXPECT_THAT(read, ElementsAre("1:one 1 2 3", "1:two")) << "seed " << seed;
  }
}

TEST(EventsOfLogTest, RefusesRecordsThatNoLogWrites) {
  EventsOfLog events;
  EXPECT_TRUE(absl::IsDataLoss(events.Add({}).status()));
  const std::vector<std::byte> unknown = {std::byte{77}, std::byte{0}};
  EXPECT_TRUE(absl::IsDataLoss(events.Add(unknown).status()));
  const std::vector<std::byte> half_a_value = {std::byte{1}, std::byte{0}, std::byte{0}};
  EXPECT_TRUE(absl::IsDataLoss(events.Add(half_a_value).status()));
}

}  // namespace
}  // namespace slipstream
