#include "worker/data/file_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/worker/data/gzip.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

Bytes Pattern(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * i / 7);
  return bytes;
}

std::string MessageOf(const absl::StatusOr<Bytes>& result) {
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss) << result.status();
  return std::string(result.status().message());
}

TEST(GunzipTest, GivesBackWhatWasPacked) {
  for (const size_t size : {0, 1, 255, 65536, 5 << 20}) {
    SCOPED_TRACE(size);

    const absl::StatusOr<Bytes> bytes = Gunzip(Gzip(Pattern(size)), "a.gz");

    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_TRUE(*bytes == Pattern(size));
  }
}

TEST(GunzipTest, JoinsConcatenatedMembers) {
  Bytes packed = Gzip({1, 2, 3});
  const Bytes second = Gzip({4, 5});
  packed.insert(packed.end(), second.begin(), second.end());

  const absl::StatusOr<Bytes> bytes = Gunzip(packed, "a.gz");

  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, (Bytes{1, 2, 3, 4, 5}));
}

TEST(GunzipTest, TakesZeroBytesBehindAMemberAsPadding) {
  Bytes packed = Gzip({1, 2, 3});
  packed.resize(packed.size() + 5);
  const Bytes second = Gzip({4, 5});
  packed.insert(packed.end(), second.begin(), second.end());
  packed.resize(packed.size() + 512);

  const absl::StatusOr<Bytes> bytes = Gunzip(packed, "a.gz");

  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, (Bytes{1, 2, 3, 4, 5}));
  packed.push_back('x');
  EXPECT_EQ(MessageOf(Gunzip(packed, "a.gz")), "a.gz: 1 bytes follow the end of the gzip stream");
}

TEST(GunzipTest, NoticesEveryTruncation) {
  const Bytes packed = Gzip(Pattern(2000));
  for (size_t size = 0; size < packed.size(); ++size) {
    SCOPED_TRACE(testing::Message() << size << " of " << packed.size() << " bytes");
    const auto cut = std::span(packed).first(size);
    EXPECT_THAT(MessageOf(Gunzip(cut, "a.gz")), HasSubstr("a.gz: truncated: the gzip stream ends"));
  }
}

TEST(GunzipTest, NamesAWrongCrcAndAWrongLength) {
  const Bytes packed = Gzip(Pattern(2000));
  Bytes wrong_crc = packed;
  wrong_crc[packed.size() - 8] ^= 1;
  Bytes wrong_length = packed;
  wrong_length[packed.size() - 4] ^= 1;

  EXPECT_EQ(MessageOf(Gunzip(wrong_crc, "a.gz")),
            "a.gz: the gzip CRC of the unpacked bytes does not match the one in the file");
  EXPECT_EQ(MessageOf(Gunzip(wrong_length, "a.gz")),
            "a.gz: unpacks to 2000 bytes, which is not the length in the file");
}

TEST(GunzipTest, NoticesEveryFlippedBitOfTheDataAndTrailer) {
  const Bytes packed = Gzip(Pattern(300));
  constexpr size_t kHeaderBytes = 10;  // No checksum covers its time and system fields.
  for (size_t bit = kHeaderBytes * 8; bit < packed.size() * 8; ++bit) {
    SCOPED_TRACE(testing::Message() << "bit " << bit);
    Bytes damaged = packed;
    damaged[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const absl::StatusOr<Bytes> bytes = Gunzip(damaged, "a.gz");
    // Padding bits in the last byte of the data have no meaning; zlib correctly ignores them.
    if (bytes.ok()) {
      EXPECT_TRUE(*bytes == Pattern(300));
    } else {
      EXPECT_EQ(bytes.status().code(), absl::StatusCode::kDataLoss);
    }
  }
}

TEST(GunzipTest, RefusesWhatIsNoGzipFile) {
  EXPECT_EQ(MessageOf(Gunzip(Pattern(100), "a.gz")),
            "a.gz: not a sound gzip file: incorrect header check");
}

TEST(GunzipTest, RefusesBytesAfterTheEnd) {
  Bytes packed = Gzip({1, 2, 3});
  packed.push_back('x');

  EXPECT_EQ(MessageOf(Gunzip(packed, "a.gz")), "a.gz: 1 bytes follow the end of the gzip stream");
}

TEST(GunzipTest, StopsUnpackingAtTheBound) {
  const Bytes packed = Gzip(Bytes(4 << 20));

  EXPECT_TRUE(Gunzip(packed, "a.gz", 4 << 20).ok());
  EXPECT_EQ(MessageOf(Gunzip(packed, "a.gz", (4 << 20) - 1)),
            "a.gz: unpacks to more than 4194303 bytes, the most accepted");
}

}  // namespace
}  // namespace slipstream
