#include "worker/data/csv_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/worker/data/temp_directory.h"

namespace slipstream {
namespace {

class CsvLinesTest : public testing::Test {
 protected:
  std::vector<std::string> Lines(const std::string& text) const {
    directory_.Write("t.csv", text);
    absl::StatusOr<CsvLines> lines = CsvLines::Open(directory_.path() + "/t.csv");
    EXPECT_TRUE(lines.ok()) << lines.status();
    std::vector<std::string> read;
    for (;;) {
      const auto line = lines->Next();
      EXPECT_TRUE(line.ok()) << line.status();
      if (!line.ok() || !*line) break;
      read.emplace_back(**line);
      EXPECT_EQ(lines->number(), read.size());
    }
    EXPECT_EQ(lines->share(), 1);
    return read;
  }

  const TempDirectory directory_;
};

using Texts = std::vector<std::string>;

TEST_F(CsvLinesTest, EndInEveryUsualWay) {
  EXPECT_EQ(Lines(""), Texts{});
  EXPECT_EQ(Lines("a"), Texts{"a"});
  EXPECT_EQ(Lines("a\n"), Texts{"a"});
  EXPECT_EQ(Lines("a\r\nb\n\nc"), (Texts{"a", "b", "", "c"}));
}

TEST_F(CsvLinesTest, MayBeLongerThanWhatIsReadAtOnce) {
  std::string text;
  Texts expected;
  for (size_t bytes : {10u, 3'000'000u, 0u, 1'048'575u, 1'048'576u, 1u}) {
    expected.emplace_back(bytes, static_cast<char>('a' + expected.size()));
    text += expected.back() + "\n";
  }

  EXPECT_EQ(Lines(text), expected);
}

TEST_F(CsvLinesTest, AreBounded) {
  directory_.Write("t.csv", "a\n" + std::string(CsvLines::kLineBytesMax + (2 << 20), 'x'));
  absl::StatusOr<CsvLines> lines = CsvLines::Open(directory_.path() + "/t.csv");
  EXPECT_TRUE(lines->Next().ok());

  const absl::Status status = lines->Next().status();

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(std::string(status.message()),
            directory_.path() + "/t.csv: line 2 has more than 67108864 bytes, the most accepted");
}

TEST_F(CsvLinesTest, AreThoseOfAFile) {
  EXPECT_EQ(CsvLines::Open(directory_.path()).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CsvLines::Open("/none/t.csv").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace slipstream
