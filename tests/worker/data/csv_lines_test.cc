#include "worker/data/csv_lines.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
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
  EXPECT_EQ(Lines("a\rb\r\rc\r"), (Texts{"a", "b", "", "c"}));
  EXPECT_EQ(Lines("a\r\r\nb"), (Texts{"a", "", "b"}));
}

// The first read takes a CR, and the next one its LF.
TEST_F(CsvLinesTest, EndOnceWhereTheirEndIsReadInTwo) {
  const std::string line(1'048'575, 'x');

  EXPECT_EQ(Lines(line + "\r\nb"), (Texts{line, "b"}));
  EXPECT_EQ(Lines(line + "\r"), Texts{line});
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

/// Returns the fields with a bar between them, those in quotes marked by q; "open" if a quote has
/// no end.
std::string Fields(const std::string& line) {
  std::vector<CsvField> fields;
  if (!SplitCsvRow(line, fields)) return "open";
  std::string text;
  for (const CsvField& field : fields) {
    text += (text.empty() ? "" : "|") + std::string(field.is_quoted ? "q:" : ":") + field.Name();
  }
  return text;
}

TEST(CsvRowTest, IsSplitAtCommasOutsideOfQuotes) {
  EXPECT_EQ(Fields("1,2,3"), ":1|:2|:3");
  EXPECT_EQ(Fields(" 1 ,\t2\t,"), ":1|:2|:");
  EXPECT_EQ(Fields(R"("price, in [€]",b)"), "q:price, in [€]|:b");
  EXPECT_EQ(Fields(R"( "a ""b"", c" , "" )"), R"(q:a "b", c|q:)");
  EXPECT_EQ(Fields(R"(a"b,"c"d,"1"2)"), R"(:a"b|:"c"d|:"1"2)");
  EXPECT_EQ(Fields(R"(1,"2,3)"), "open");
  EXPECT_EQ(Fields(R"("")"), "q:");
  EXPECT_EQ(Fields(R"(""")"), "open");
}

TEST(CsvNumberTest, IsADecimalNumberAndNothingElse) {
  EXPECT_EQ(ParseCsvNumber("+1.5e2"), 150);
  EXPECT_EQ(ParseCsvNumber("-.5"), -0.5);
  EXPECT_EQ(ParseCsvNumber("5."), 5);
  EXPECT_EQ(ParseCsvNumber("1E-400"), 0);
  EXPECT_EQ(ParseCsvNumber("-" + std::string("0.") + std::string(400, '0') + "1"), 0);
  EXPECT_EQ(ParseCsvNumber("-1e400"), -std::numeric_limits<double>::infinity());
  for (const char* text : {"", "+", "+-1", "++1", "1,5", "1 000", "1_000", "1'000", "0x10", "1e",
                           "e1", ".", "1.2.3", "1d5", "１"}) {
    EXPECT_EQ(ParseCsvNumber(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace slipstream
