#include "server/storage/log_segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/process/version.h"
#include "tests/server/storage/log_fixture.h"
#include "tests/support/simulated_disk.h"

namespace slipstream {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LogSegmentTest : public testing::Test {
 protected:
  LogSegmentTest() { EXPECT_TRUE(disk_.MakeDirectories(kLogDirectory).ok()); }

  LogSegmentWriter Create(uint64_t number) {
    return LogSegmentWriter::Create(disk_, kLogDirectory, number).value();
  }

  /// Makes a segment with one batch, and closes it.
  void WriteSegment(uint64_t number, const Batch& batch) {
    LogSegmentWriter writer = Create(number);
    ASSERT_TRUE(WriteBatch(writer, batch).ok());
    ASSERT_TRUE(writer.Close().ok());
  }

  std::string& Bytes(uint64_t number) { return disk_.BytesOf(SegmentPath(kLogDirectory, number)); }

  /// Expects that the log from segment 1 on is refused with this code, and that the message has all
  /// of `parts`.
  void ExpectRefused(absl::StatusCode code, const std::vector<std::string>& parts) {
    const absl::Status refused = ReadLog(disk_).status();
    EXPECT_EQ(refused.code(), code);
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(refused.message()), HasSubstr(part));
    }
  }

  SimulatedDisk disk_;
};

TEST_F(LogSegmentTest, GivesBackRecordsOfAllSizes) {
  const std::vector<Batch> batches = {
      {"", RecordOf(1, 1), RecordOf(2, 511)},
      {RecordOf(3, 512)},
      {""},
      {RecordOf(4, 513), RecordOf(5, size_t{1} << 20), RecordOf(6, 7)}};
  LogSegmentWriter first = Create(1);
  ASSERT_TRUE(WriteBatch(first, batches[0]).ok());
  ASSERT_TRUE(WriteBatch(first, batches[1]).ok());
  ASSERT_TRUE(first.Close().ok());
  LogSegmentWriter second = Create(2);
  ASSERT_TRUE(WriteBatch(second, batches[2]).ok());
  ASSERT_TRUE(WriteBatch(second, batches[3]).ok());

  const absl::StatusOr<LogContent> read = ReadLog(disk_);

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->records, RecordsOf(batches, batches.size()));
  EXPECT_EQ(read->last, 2u);
  EXPECT_EQ(read->end.whole_bytes, second.bytes());
  EXPECT_EQ(read->end.torn_bytes, 0u);
  EXPECT_FALSE(read->end.is_closed);
  EXPECT_EQ(first.bytes(), Bytes(1).size());
  EXPECT_EQ(second.bytes(), Bytes(2).size());
}

TEST_F(LogSegmentTest, NamesTheSegmentOfEachRecord) {
  WriteSegment(1, {"a", "b"});
  WriteSegment(2, {"c"});
  LogReader reader = LogReader::Open(disk_, kLogDirectory, 1).value();
  std::vector<uint64_t> segments;

  while (reader.Next().value().has_value()) segments.push_back(reader.segment());

  EXPECT_THAT(segments, ElementsAre(1, 1, 2));
  EXPECT_TRUE(reader.end().is_closed);
}

TEST_F(LogSegmentTest, ASegmentEndsWhereItWasClosed) {
  WriteSegment(1, {"x"});
  const uint64_t end = Bytes(1).size();
  Bytes(1) += Bytes(1).substr(kSectorBytes, kSectorBytes);  // The first batch again.
  LogSegmentReader reader = LogSegmentReader::Open(disk_, kLogDirectory, 1).value();

  EXPECT_TRUE(reader.Next().value().has_value());
  EXPECT_FALSE(reader.Next().value().has_value());

  EXPECT_TRUE(reader.end().is_closed);
  EXPECT_EQ(reader.end().whole_bytes, end);
  EXPECT_EQ(reader.end().torn_bytes, kSectorBytes);
}

TEST_F(LogSegmentTest, ReadsFromASegmentOnWithoutThoseBefore) {
  for (const uint64_t number : {8, 9, 10, 11}) WriteSegment(number, {std::to_string(number)});
  ASSERT_TRUE(RemoveSegmentsBefore(disk_, kLogDirectory, 9).ok());
  disk_.Crash();

  EXPECT_THAT(ListSegments(disk_, kLogDirectory).value(), ElementsAre(9, 10, 11));
  EXPECT_THAT(ReadLog(disk_, 9)->records, ElementsAre("9", "10", "11"));
  EXPECT_THAT(ReadLog(disk_, 11)->records, ElementsAre("11"));
}

TEST_F(LogSegmentTest, NamesASegmentThatIsMissing) {
  EXPECT_EQ(ReadLog(disk_).status().message(), "/log/log-1: is missing");
  for (const uint64_t number : {1, 2, 3}) WriteSegment(number, {"x"});
  ASSERT_TRUE(disk_.Remove(SegmentPath(kLogDirectory, 2)).ok());

  ExpectRefused(absl::StatusCode::kDataLoss, {"/log/log-2: is missing"});
  EXPECT_EQ(LogSegmentReader::Open(disk_, kLogDirectory, 2).status().code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE(disk_.Remove(SegmentPath(kLogDirectory, 1)).ok());
  ExpectRefused(absl::StatusCode::kDataLoss, {"/log/log-1: is missing"});
}

TEST_F(LogSegmentTest, ASegmentIsMadeOnce) {
  WriteSegment(1, {"x"});

  EXPECT_FALSE(LogSegmentWriter::Create(disk_, kLogDirectory, 1).ok());
  EXPECT_THAT(ReadLog(disk_)->records, ElementsAre("x"));
}

TEST_F(LogSegmentTest, NamesTheLaterReleaseThatWroteIt) {
  WriteSegment(1, {"x"});
  std::string& bytes = Bytes(1);
  SegmentHead head = DecodeHead(std::as_bytes(std::span(bytes))).value();
  head.program = "9.0.0";
  bytes.replace(0, kSectorBytes, EncodeHead(head));
  EXPECT_THAT(ReadLog(disk_)->records, ElementsAre("x")) << "it has a format that is known";

  head.format = kDurableFormat + 1;
  bytes.replace(0, kSectorBytes, EncodeHead(head));
  ExpectRefused(absl::StatusCode::kFailedPrecondition,
                {"/log/log-1: slipstream 9.0.0 has written it, in format 6, and this is "});
}

TEST_F(LogSegmentTest, ASegmentUnderTheNameOfAnotherIsRefused) {
  WriteSegment(1, {"x"});
  WriteSegment(2, {"y"});
  Bytes(1) = Bytes(2);

  ExpectRefused(absl::StatusCode::kDataLoss, {"/log/log-1: is log-2"});
}

TEST_F(LogSegmentTest, RecordsThatDoNotFillTheirBatchAreRefused) {
  for (const std::pair<uint64_t, uint64_t> sizes :
       {std::pair(8, 2), std::pair(7, 1), std::pair(16, 1)}) {
    const auto [bytes, records] = sizes;
    SCOPED_TRACE(testing::Message() << records << " records in " << bytes << " bytes");
    SimulatedDisk disk;
    ASSERT_TRUE(disk.MakeDirectories(kLogDirectory).ok());
    ASSERT_TRUE(LogSegmentWriter::Create(disk, kLogDirectory, 1).ok());
    const std::string body(kSectorBytes - kBatchHeaderBytes, '\1');
    disk.BytesOf(SegmentPath(kLogDirectory, 1)) +=
        EncodeBatchHeader({.segment = 1,
                           .bytes = bytes,
                           .records = records,
                           .body = HashOf(std::as_bytes(std::span(body)))}) +
        body;

    const absl::Status refused = ReadLog(disk).status();

    EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("/log/log-1: the checksum of the batch at byte 512 is right, but"));
  }
}

TEST_F(LogSegmentTest, DamageBeforeWhatIsLeftOfALaterBatchIsNoTornTail) {
  LogSegmentWriter writer = Create(1);
  ASSERT_TRUE(WriteBatch(writer, {"x"}).ok());
  const uint64_t second = writer.bytes();
  ASSERT_TRUE(WriteBatch(writer, {RecordOf(1, 3000)}).ok());
  Bytes(1).resize(second + kSectorBytes);  // The machine stopped in the second batch.
  EXPECT_THAT(ReadLog(disk_)->records, ElementsAre("x"));

  Bytes(1)[kSectorBytes] ^= 1;

  ExpectRefused(absl::StatusCode::kDataLoss,
                {"/log/log-1: damaged: bytes 512 to 1024 are no batch, and a later batch follows"});
}

TEST_F(LogSegmentTest, ANewSegmentWithoutAHeadIsATailThatIsCutOff) {
  for (const size_t bytes : {size_t{0}, size_t{1}, kSectorBytes}) {
    SCOPED_TRACE(testing::Message() << bytes << " bytes");
    SimulatedDisk disk;
    ASSERT_TRUE(disk.MakeDirectories(kLogDirectory).ok());
    LogSegmentWriter first = LogSegmentWriter::Create(disk, kLogDirectory, 1).value();
    ASSERT_TRUE(WriteBatch(first, {"x"}).ok());
    ASSERT_TRUE(LogSegmentWriter::Create(disk, kLogDirectory, 2).ok());
    disk.BytesOf(SegmentPath(kLogDirectory, 2)) = std::string(bytes, '\0');

    const absl::StatusOr<LogContent> read = ReadAndCutLog(disk);

    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(read->records, ElementsAre("x"));
    EXPECT_EQ(read->last, 1u);
    EXPECT_THAT(ListSegments(disk, kLogDirectory).value(), ElementsAre(1));
    EXPECT_TRUE(LogSegmentWriter::Create(disk, kLogDirectory, 2).ok());
  }
}

TEST_F(LogSegmentTest, ALogWhoseFirstSegmentHasNoHeadIsEmpty) {
  (void)Create(5);
  Bytes(5).clear();

  const absl::StatusOr<LogContent> read = ReadAndCutLog(disk_, 5);

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->records, IsEmpty());
  EXPECT_EQ(read->last, 4u);
  EXPECT_THAT(ListSegments(disk_, kLogDirectory).value(), IsEmpty());
}

TEST_F(LogSegmentTest, AFailedReadIsNotTheEndOfTheLog) {
  WriteSegment(1, {"a", "b"});
  WriteSegment(2, {"c"});
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; ++number) {
    SCOPED_TRACE(testing::Message() << "call " << number);
    disk_.FailCall(number);

    const absl::StatusOr<LogContent> read = ReadLog(disk_);

    has_failed = disk_.has_failed();
    EXPECT_EQ(read.ok(), !has_failed);
    if (has_failed) {
      EXPECT_THAT(std::string(read.status().message()),
                  AllOf(HasSubstr(kLogDirectory), HasSubstr("Input/output error")));
    }
    disk_.FailCall(1'000'000);  // The disk works again.
  }
}

}  // namespace
}  // namespace slipstream
