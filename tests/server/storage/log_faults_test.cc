#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/storage/flipped_bits.h"
#include "tests/server/storage/log_fixture.h"
#include "tests/support/simulated_disk.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<Batch>& Batches() {
  static const std::vector<Batch> kBatches = {{RecordOf(1, 20), RecordOf(2, 5000)},
                                              {RecordOf(3, 700)},
                                              {RecordOf(4, 2000)},
                                              {"", RecordOf(5, 400)},
                                              {RecordOf(6, 11'000)}};
  return kBatches;
}

// The batches that begin a new segment.
bool BeginsSegment(size_t batch) { return batch == 0 || batch == 2 || batch == 3; }

/// Writes all batches, up to the first failure. Returns how many are on the disk for sure.
size_t WriteAll(Disk& disk) {
  std::optional<LogSegmentWriter> writer;
  uint64_t segment = 0;
  for (size_t batch = 0; batch < Batches().size(); ++batch) {
    if (BeginsSegment(batch)) {
      if (writer && !writer->Close().ok()) return batch;
      absl::StatusOr<LogSegmentWriter> next =
          LogSegmentWriter::Create(disk, kLogDirectory, ++segment);
      if (!next.ok()) return batch;
      writer = *std::move(next);
    }
    if (!WriteBatch(*writer, Batches()[batch]).ok()) return batch;
  }
  return Batches().size();
}

std::unique_ptr<SimulatedDisk> NewDisk() {
  auto disk = std::make_unique<SimulatedDisk>();
  EXPECT_TRUE(disk->MakeDirectories(kLogDirectory).ok());
  return disk;
}

/// Goes on as a server does that was started again: it reads the log, cuts the tail, and begins a
/// new segment with one record. Returns what it has read. Its log begins with segment 1 if that has
/// no name yet.
absl::StatusOr<LogContent> GoOn(Disk& disk) {
  const absl::StatusOr<std::vector<uint64_t>> segments = ListSegments(disk, kLogDirectory);
  if (!segments.ok()) return segments.status();
  LogContent content;
  if (!segments->empty()) {
    absl::StatusOr<LogContent> read = ReadAndCutLog(disk);
    if (!read.ok()) return read;
    content = *std::move(read);
  }
  absl::StatusOr<LogSegmentWriter> writer =
      LogSegmentWriter::Create(disk, kLogDirectory, content.last + 1);
  if (!writer.ok()) return writer.status();
  if (absl::Status written = WriteBatch(*writer, {"goes on"}); !written.ok()) return written;
  return content;
}

/// Expects that the records are those of the first batches, whole ones, and of so many at least.
void ExpectPrefix(const std::vector<std::string>& records, size_t batches_at_least) {
  for (size_t count = batches_at_least; count <= Batches().size(); ++count) {
    if (records == RecordsOf(Batches(), count)) return;
  }
  ADD_FAILURE() << records.size() << " records are not those of the first batches";
}

/// Expects that a server can go on with the log, and finds so many batches at least; and that
/// another server finds the same after a crash, and what the first one has added.
void ExpectAllThere(SimulatedDisk& disk, size_t batches_at_least) {
  const absl::StatusOr<LogContent> read = GoOn(disk);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectPrefix(read->records, batches_at_least);
  disk.Crash();
  const absl::StatusOr<LogContent> again = ReadLog(disk);
  ASSERT_TRUE(again.ok()) << again.status();
  std::vector<std::string> expected = read->records;
  expected.push_back("goes on");
  EXPECT_EQ(again->records, expected);
  EXPECT_EQ(again->end.torn_bytes, 0u);
}

/// Calls `check` with seeds of crashes; the first is the one that loses all that was not synced.
template <typename Check>
void ForSeeds(const Check& check) {
  check(std::optional<uint64_t>());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    check(std::optional(seed));
  }
}

TEST(LogFaultsTest, ACrashAtAnyCallLosesNoBatchThatWasWritten) {
  ForSeeds([](std::optional<uint64_t> seed) {
    bool has_failed = true;
    for (uint64_t number = 1; has_failed; ++number) {
      SCOPED_TRACE(testing::Message() << "call " << number);
      const std::unique_ptr<SimulatedDisk> disk = NewDisk();
      disk->StopAtCall(number);
      const size_t written = WriteAll(*disk);
      has_failed = disk->has_failed();

      disk->Crash(seed);

      ExpectAllThere(*disk, written);
    }
  });
}

TEST(LogFaultsTest, ACrashAtAnyCallOfAServerThatGoesOnLosesNothingEither) {
  ForSeeds([](std::optional<uint64_t> seed) {
    // The first crash is in the last batch, or in the head of the last segment.
    const std::unique_ptr<SimulatedDisk> whole = NewDisk();
    ASSERT_EQ(WriteAll(*whole), Batches().size());
    for (const uint64_t first_stop : {whole->calls() - 1, whole->calls() - 8}) {
      bool has_failed = true;
      for (uint64_t number = 1; has_failed; ++number) {
        SCOPED_TRACE(testing::Message() << "calls " << first_stop << " and " << number);
        const std::unique_ptr<SimulatedDisk> disk = NewDisk();
        disk->StopAtCall(first_stop);
        const size_t written = WriteAll(*disk);
        disk->Crash(seed);
        disk->StopAtCall(number);
        const bool goes_on = GoOn(*disk).ok();
        has_failed = disk->has_failed();
        EXPECT_EQ(goes_on, !has_failed);

        disk->Crash(seed);

        if (!goes_on) {
          const absl::StatusOr<LogContent> read = ReadAndCutLog(*disk);
          ASSERT_TRUE(read.ok()) << read.status();
          std::vector<std::string> records = read->records;
          if (!records.empty() && records.back() == "goes on") records.pop_back();
          ExpectPrefix(records, written);
        }
      }
    }
  });
}

TEST(LogFaultsTest, AFailureOfAnyCallLosesNoBatchThatWasWritten) {
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; ++number) {
    SCOPED_TRACE(testing::Message() << "call " << number);
    const std::unique_ptr<SimulatedDisk> disk = NewDisk();
    disk->FailCall(number);
    const size_t written = WriteAll(*disk);
    has_failed = disk->has_failed();
    EXPECT_EQ(written < Batches().size(), has_failed);
    disk->FailCall(1'000'000);  // The disk works again.

    ExpectAllThere(*disk, written);
  }
}

TEST(LogFaultsTest, AFullDiskLosesNoBatchThatWasWritten) {
  const std::unique_ptr<SimulatedDisk> whole = NewDisk();
  ASSERT_EQ(WriteAll(*whole), Batches().size());
  for (uint64_t room = 0; room < whole->BytesUsed(); room += 100) {
    SCOPED_TRACE(testing::Message() << room << " bytes of room");
    const std::unique_ptr<SimulatedDisk> disk = NewDisk();
    disk->SetCapacity(room);
    const size_t written = WriteAll(*disk);
    EXPECT_LT(written, Batches().size());
    disk->SetCapacity(1'000'000);

    ExpectAllThere(*disk, written);
  }
}

TEST(LogFaultsTest, ABatchThatCouldNotBeSyncedIsOnTheDiskOnceAServerGoesOnWithIt) {
  const std::unique_ptr<SimulatedDisk> disk = NewDisk();
  LogSegmentWriter writer = LogSegmentWriter::Create(*disk, kLogDirectory, 1).value();
  ASSERT_TRUE(WriteBatch(writer, {RecordOf(1, 700)}).ok());
  disk->FailCall(2);  // The sync, and not the write.
  ASSERT_FALSE(WriteBatch(writer, {RecordOf(2, 5000)}).ok());
  ASSERT_TRUE(disk->has_failed());

  const absl::StatusOr<LogContent> read = GoOn(*disk);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->records, ElementsAre(RecordOf(1, 700), RecordOf(2, 5000)));
  disk->Crash();

  const absl::StatusOr<LogContent> again = ReadLog(*disk);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(again->records, ElementsAre(RecordOf(1, 700), RecordOf(2, 5000), "goes on"));
}

TEST(LogFaultsTest, AHeadThatCouldNotBeSyncedIsOnTheDiskOnceAServerGoesOnWithIt) {
  const std::unique_ptr<SimulatedDisk> disk = NewDisk();
  disk->FailCall(4);  // The sync of the head, after List, Create and Append.
  ASSERT_FALSE(LogSegmentWriter::Create(*disk, kLogDirectory, 1).ok());
  ASSERT_TRUE(disk->has_failed());

  const absl::StatusOr<LogContent> read = GoOn(*disk);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->last, 1u);
  disk->Crash();

  const absl::StatusOr<LogContent> again = ReadLog(*disk);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(again->records, ElementsAre("goes on"));
}

TEST(LogFaultsTest, NoServerGoesOnWithABatchThatIsForgottenAfterItWasRead) {
  const std::unique_ptr<SimulatedDisk> disk = NewDisk();
  LogSegmentWriter writer = LogSegmentWriter::Create(*disk, kLogDirectory, 1).value();
  ASSERT_TRUE(WriteBatch(writer, {"x"}).ok());
  const uint64_t whole = writer.bytes();
  ASSERT_TRUE(WriteBatch(writer, {"y"}).ok());
  LogReader reader = LogReader::Open(*disk, kLogDirectory, 1).value();
  ASSERT_THAT(ReadRest(reader)->records, ElementsAre("x", "y"));
  std::string& bytes = disk->BytesOf(SegmentPath(kLogDirectory, 1));
  std::fill(bytes.begin() + whole, bytes.end(), '\0');

  const absl::Status cut = reader.CutTail();

  EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(cut.message()),
              HasSubstr("/log/log-1: damaged: bytes 1024 to 1536 were whole before"));
  EXPECT_THAT(ReadAndCutLog(*disk)->records, ElementsAre("x"));
}

/// Damages a log of about 64 KiB.
class LogDamageTest : public testing::Test {
 protected:
  static constexpr uint64_t kSegments = 3;
  static constexpr size_t kBatchesPerSegment = 2;

  LogDamageTest() : disk_(NewDisk()) {
    for (uint64_t number = 1; number <= kSegments; ++number) {
      LogSegmentWriter writer = LogSegmentWriter::Create(*disk_, kLogDirectory, number).value();
      std::vector<uint64_t>& ends = ends_.emplace_back(1, writer.bytes());
      for (size_t i = 0; i < kBatchesPerSegment; ++i) {
        batches_.push_back({RecordOf(number, 1), RecordOf(10 * number + i, 10'000), "", "end"});
        EXPECT_TRUE(WriteBatch(writer, batches_.back()).ok());
        ends.push_back(writer.bytes());
      }
      // The server of the second one was killed.
      EXPECT_TRUE(number != 1 || writer.Close().ok());
    }
  }

  std::string& Bytes(uint64_t segment) {
    return disk_->BytesOf(SegmentPath(kLogDirectory, segment));
  }

  /// Returns whether the log from this segment on is refused with its path and a position.
  bool IsRefused(uint64_t segment) {
    const absl::Status refused = ReadLog(*disk_, segment).status();
    const std::string message(refused.message());
    return absl::IsDataLoss(refused) && message.find(" byte") != message.npos &&
           message.starts_with(SegmentPath(kLogDirectory, segment) + ": damaged: ");
  }

  /// Returns whether the newest segment is read up to the end of so many of its batches, and what
  /// is behind them is a torn tail.
  bool EndsTornAfter(size_t batches) {
    const absl::StatusOr<LogContent> read = ReadLog(*disk_, kSegments);
    const std::span<const Batch> newest = std::span(batches_).last(kBatchesPerSegment);
    return read.ok() && read->records == RecordsOf(newest, batches) && read->last == kSegments &&
           read->end.whole_bytes == ends_.back()[batches] &&
           read->end.torn_bytes == Bytes(kSegments).size() - ends_.back()[batches];
  }

  std::unique_ptr<SimulatedDisk> disk_;
  std::vector<Batch> batches_;
  std::vector<std::vector<uint64_t>> ends_;  // Of the head and the batches, for each segment.
};

TEST_F(LogDamageTest, EveryTruncationOfAnOlderSegmentIsRefused) {
  for (uint64_t segment = 1; segment < kSegments; ++segment) {
    const std::string whole = Bytes(segment);
    for (size_t size = 0; size < whole.size(); ++size) {
      Bytes(segment).resize(size);
      ASSERT_TRUE(IsRefused(segment)) << size << " bytes are left of segment " << segment;
      Bytes(segment) = whole;
    }
    Bytes(segment) += '\0';
    EXPECT_TRUE(IsRefused(segment)) << "there is one byte more";
    Bytes(segment) = whole;
  }
  EXPECT_EQ(ReadLog(*disk_)->records, RecordsOf(batches_, batches_.size()));
}

TEST_F(LogDamageTest, EveryTruncationOfTheNewestSegmentLeavesItsFirstBatches) {
  const std::string whole = Bytes(kSegments);
  const std::vector<uint64_t>& ends = ends_.back();
  for (size_t size = kSectorBytes; size <= whole.size(); ++size) {
    size_t batches = 0;
    while (batches < kBatchesPerSegment && ends[batches + 1] <= size) ++batches;
    Bytes(kSegments) = whole.substr(0, size);
    ASSERT_TRUE(EndsTornAfter(batches)) << size << " bytes are left";
    ASSERT_TRUE(ReadAndCutLog(*disk_, kSegments).ok());
    ASSERT_EQ(Bytes(kSegments), whole.substr(0, ends[batches])) << size << " bytes are left";
    ASSERT_TRUE(EndsTornAfter(batches)) << size << " bytes were left, and the tail is cut off";
  }
}

TEST_F(LogDamageTest, EveryBitThatIsFlippedIsFound) {
  for (uint64_t segment = 1; segment <= kSegments; ++segment) {
    std::string& all = Bytes(segment);
    for (size_t bit = 0; bit < 8 * all.size(); bit += kFlippedBitStep) {
      const auto mask = static_cast<char>(1 << (bit % 8));
      all[bit / 8] ^= mask;
      // A crash may have left such a last batch.
      const bool is_last = segment == kSegments && bit / 8 >= ends_.back()[kBatchesPerSegment - 1];
      ASSERT_TRUE(is_last ? EndsTornAfter(kBatchesPerSegment - 1) : IsRefused(segment))
          << "bit " << bit << " of segment " << segment;
      all[bit / 8] ^= mask;
    }
  }
  EXPECT_EQ(ReadLog(*disk_)->records, RecordsOf(batches_, batches_.size()));
}

TEST_F(LogDamageTest, NothingIsTakenForATornTailBeforeTheBatchThatClosesASegment) {
  LogSegmentWriter writer = LogSegmentWriter::Create(*disk_, kLogDirectory, kSegments + 1).value();
  ASSERT_TRUE(WriteBatch(writer, {"x"}).ok());
  const uint64_t end = writer.bytes();
  ASSERT_TRUE(writer.Close().ok());
  std::string& all = Bytes(kSegments + 1);
  for (size_t bit = 0; bit < 8 * end; ++bit) {
    const auto mask = static_cast<char>(1 << (bit % 8));
    all[bit / 8] ^= mask;
    ASSERT_TRUE(IsRefused(kSegments + 1)) << "bit " << bit;
    all[bit / 8] ^= mask;
  }
}

}  // namespace
}  // namespace slipstream
