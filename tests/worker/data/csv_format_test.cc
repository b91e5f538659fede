#include "worker/data/csv_format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/worker/data/temp_directory.h"

namespace slipstream {
namespace {

constexpr auto kClasses = ModelSpec::Loss::kCrossEntropy;
constexpr auto kTargets = ModelSpec::Loss::kMse;

using Names = std::vector<std::string>;

class CsvFormatTest : public testing::Test {
 protected:
  void Write(const std::string& train, const std::string& test) const {
    directory_.Write("train.csv", train);
    directory_.Write("test.csv", test);
  }

  DataSpec Spec(const Names& labels = {}, DataSpec::Header header = DataSpec::Header::kAuto) const {
    return {.path = directory_.path(), .header = header, .label_columns = labels};
  }

  DataSplits Read(ModelSpec::Loss loss = kClasses, const Names& labels = {},
                  DataSpec::Header header = DataSpec::Header::kAuto) const {
    absl::StatusOr<DataSplits> splits = ReadCsv(Spec(labels, header), loss, {});
    EXPECT_TRUE(splits.ok()) << splits.status();
    return splits.ok() ? *std::move(splits) : DataSplits{};
  }

  /// Returns the error from reading `train`, without the directory's name.
  std::string ErrorOf(const std::string& train, ModelSpec::Loss loss = kClasses,
                      const Names& labels = {}) const {
    Write(train, "1,2,0\n");
    return Error(loss, labels);
  }

  std::string Error(ModelSpec::Loss loss = kClasses, const Names& labels = {}) const {
    const absl::Status status = ReadCsv(Spec(labels), loss, {}).status();
    EXPECT_FALSE(status.ok());
    std::string message(status.message());
    EXPECT_EQ(message.rfind(directory_.path() + "/", 0), 0u) << message;
    return message.substr(directory_.path().size() + 1);
  }

  const TempDirectory directory_;
};

TEST_F(CsvFormatTest, TheLastColumnIsTheClassUnlessTold) {
  Write("1,2,0\n3,4.5,2\n", "-5e-1,+6,1\n");

  const DataSplits splits = Read();

  EXPECT_EQ(splits.train.shape, (ExampleShape{.channels = 2}));
  EXPECT_EQ(splits.train.examples.All(), (std::vector<float>{1, 2, 3, 4.5f}));
  EXPECT_EQ(splits.train.labels, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(splits.train.outputs, 3u);
  EXPECT_EQ(splits.test.examples.All(), (std::vector<float>{-0.5f, 6}));
  EXPECT_EQ(splits.test.labels, (std::vector<uint32_t>{1}));
  EXPECT_EQ(splits.test.outputs, 3u);
}

TEST_F(CsvFormatTest, ReadsAHeaderAndColumnsByTheirNames) {
  Write("kind,width,\"height\"\n2,1,2\n0,3,4\n", "kind,width,height\n1,5,6\n");

  EXPECT_EQ(Read(kClasses, {"kind"}).train.labels, (std::vector<uint32_t>{2, 0}));
  EXPECT_EQ(Read(kClasses, {"kind"}).train.examples.All(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(Read(kTargets).train.targets, (std::vector<float>{2, 4}));
  const DataSplits both = Read(kTargets, {"height", "kind"});
  EXPECT_EQ(both.train.targets, (std::vector<float>{2, 2, 4, 0}));
  EXPECT_EQ(both.train.examples.All(), (std::vector<float>{1, 3}));
  EXPECT_EQ(both.train.outputs, 2u);
}

TEST_F(CsvFormatTest, ReadsNamesWithCommasAndQuotes) {
  Write("\"price, in \"\"€\"\"\",kind\n\"1.5\",2\n", "\"price, in \"\"€\"\"\",kind\n3,0\n");

  const DataSplits splits = Read(kTargets, {"price, in \"€\""});

  EXPECT_EQ(splits.train.targets, std::vector<float>{1.5f});
  EXPECT_EQ(splits.train.examples.All(), std::vector<float>{2});
}

/// First lines that pandas and others write; each may be a header or an example.
const std::vector<std::string> kUnclear = {
    "0,1,2", "2019,2020,2023", "\"5\",\"1\",\"3\"", "kind,0,1", "NA,NA,NA", "nan,NA,?", ",0,1"};

TEST_F(CsvFormatTest, DoesNotGuessWhetherTheFirstLineIsAHeader) {
  for (const std::string& first : kUnclear) {
    const std::string message = ErrorOf(first + "\n1,2,0\n");

    EXPECT_EQ(message.rfind("train.csv: line 1: found ", 0), 0u) << message;
    EXPECT_NE(message.find("\", which may be the names of the columns or an example; say --set "
                           "data.header=true if they are names, and data.header=false if not"),
              std::string::npos)
        << message;
  }
}

TEST_F(CsvFormatTest, TakesTheFirstLineAsTold) {
  for (const std::string& first : std::vector(kUnclear.begin(), kUnclear.end() - 1)) {
    Write(first + "\n3,4,0\n", first + "\n3,4,1\n");
    EXPECT_EQ(Read(kClasses, {}, DataSpec::Header::kPresent).train.examples.All(),
              (std::vector<float>{3, 4}))
        << first;
  }
  Write("0,1,2\n3,4,0\n", "\"5\",\"1\",\"0\"\n");
  EXPECT_EQ(Read(kClasses, {}, DataSpec::Header::kAbsent).train.examples.All(),
            (std::vector<float>{0, 1, 3, 4}));
}

TEST_F(CsvFormatTest, NamedLabelsMakeTheFirstLineAHeader) {
  Write("2019,2020,2021\n2,3,4\n", "2019,2020,2021\n5,6,7\n");

  EXPECT_EQ(Read(kTargets, {"2020"}).train.targets, std::vector<float>{3});
}

TEST_F(CsvFormatTest, EndsOfLinesSpacesAndAByteOrderMarkMeanNothing) {
  Write(
      "\xEF\xBB\xBF"
      "1, 2 ,0\r\n3,\"4\",1.0\r\n\r\n\n",
      "1,2,0\r5,6,0\r");

  const DataSplits splits = Read();

  EXPECT_EQ(splits.train.examples.All(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(splits.train.labels, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(splits.test.examples.All(), (std::vector<float>{1, 2, 5, 6}));
}

TEST_F(CsvFormatTest, RefusesByItsCountOfLinesWhatMemoryCannotHold) {
  std::string row = "1";
  for (int i = 0; i < 100'000; ++i) row += ",1";
  Write(row + std::string(10'000'000, '\n'), "1,2,0\n");

  const absl::Status status = ReadCsv(Spec(), kClasses, {}).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("train.csv: no memory for the data: 4000040000000 bytes"),
            absl::string_view::npos)
      << status;
}

TEST_F(CsvFormatTest, TellsItsProgressAndGivesUpWhenTold) {
  std::string train;
  for (int i = 0; i < 10'000; ++i) train += "1,2,0\n";
  Write(train, "1,2,0\n");
  std::vector<double> shares;

  const auto gives_up = [&](const std::string&, double share) {
    shares.push_back(share);
    return shares.size() < 2;
  };

  EXPECT_EQ(ReadCsv(Spec(), kClasses, gives_up).status().code(), absl::StatusCode::kCancelled);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_NEAR(shares[1], 0.41, 0.01);  // Still in the first of two passes.
}

struct Bad {
  std::string train;
  std::string message;
};

class BadCsvTest : public CsvFormatTest, public testing::WithParamInterface<Bad> {};

TEST_P(BadCsvTest, IsRefusedNamingLineAndColumn) {
  EXPECT_EQ(ErrorOf(GetParam().train), GetParam().message);
}

const std::string kValue = ", expected a finite number that fp32 can hold";
const std::string kClass = ", expected a class: a whole number from 0 to 1048575";

INSTANTIATE_TEST_SUITE_P(
    Table, BadCsvTest,
    testing::Values(
        Bad{"", "train.csv: is empty"}, Bad{"\n\n", "train.csv: has no examples"},
        Bad{"a,b,c\n", "train.csv: has no examples"},
        Bad{"1,2,0\n1,x,0\n", "train.csv: line 2, column 2: found \"x\"" + kValue},
        Bad{"a,b,c\n1,2,0\n1,1 2,0\n", "train.csv: line 3, column 2 (b): found \"1 2\"" + kValue},
        Bad{"1,2,0\nNA,NA,NA\n", "train.csv: line 2, column 1: found \"NA\"" + kValue},
        Bad{"1,NA,0\n1,2,0\n", "train.csv: line 1, column 2: found \"NA\"" + kValue},
        Bad{"1,2,0\n+-1,2,0\n", "train.csv: line 2, column 1: found \"+-1\"" + kValue},
        Bad{"1,2,0\n\"1,5\",2,0\n", "train.csv: line 2, column 1: found \"1,5\"" + kValue},
        Bad{"1,2,0\n1,\"2,0\n",
            "train.csv: line 2: a field begins with \" and does not end with one"},
        Bad{"1,2,0,\n", "train.csv: line 1, column 4: found nothing" + kClass},
        Bad{"\x1f\x8b\x08", "train.csv: is packed by gzip; unpack it first, with gzip -d"},
        Bad{"\xff\xfe\x31", "train.csv: is UTF-16; save it as UTF-8"},
        Bad{"1,2,0\n1,,0\n", "train.csv: line 2, column 2: found nothing" + kValue},
        Bad{"1,2,0\n1,nan,0\n", "train.csv: line 2, column 2: found \"nan\"" + kValue},
        Bad{"1,2,0\n-inf,2,0\n", "train.csv: line 2, column 1: found \"-inf\"" + kValue},
        Bad{"1,2,0\n1,1e39,0\n", "train.csv: line 2, column 2: found \"1e39\"" + kValue},
        Bad{"1,2,0\n1,1e999,0\n", "train.csv: line 2, column 2: found \"1e999\"" + kValue},
        Bad{"1,2,0\n1,0x10,0\n", "train.csv: line 2, column 2: found \"0x10\"" + kValue},
        Bad{"1,2,0\n1,2,-1\n", "train.csv: line 2, column 3: found \"-1\"" + kClass},
        Bad{"1,2,0\n1,2,1.5\n", "train.csv: line 2, column 3: found \"1.5\"" + kClass},
        Bad{"1,2,0\n1,2,cat\n", "train.csv: line 2, column 3: found \"cat\"" + kClass},
        Bad{"1,2,0\n1,2,1048576\n", "train.csv: line 2, column 3: found \"1048576\"" + kClass},
        Bad{"1,2,0\n1,0\n", "train.csv: line 2: found 2 columns, expected 3 as in line 1"},
        Bad{"1,2,0\n1,2,3,0\n", "train.csv: line 2: found 4 columns, expected 3 as in line 1"},
        Bad{"1,2,0\n\n1,2,0\n", "train.csv: line 2 is empty"},
        Bad{"1;2;0\n1;2;0\n",
            "train.csv: line 1: found 1 column, all of them labels; expected others to learn from, "
            "separated by commas"},
        Bad{",a,b\n0,1,2\n",
            "train.csv: line 1, column 1: found no name, expected one in every column of a header "
            "(pandas writes its index so, unless told to_csv(path, index=False))"},
        Bad{"a,b,\n0,1,2\n",
            "train.csv: line 1, column 3: found no name, expected one in every column of a header "
            "(there is a column behind every comma)"},
        Bad{std::string("1,2,0\n1,\x00\x01,0\n", 12),
            "train.csv: line 2, column 2: found \"\\x00\\x01\"" + kValue}));

TEST_F(CsvFormatTest, SaysWhichColumnIsNotThere) {
  EXPECT_EQ(ErrorOf("a,b,c\n1,2,0\n", kClasses, {"d"}),
            "train.csv: line 1: found no columns \"d\", expected one; the columns are a, b, c");
  EXPECT_EQ(
      ErrorOf("a,b,a\n1,2,0\n", kClasses, {"a"}),
      "train.csv: line 1: found several columns \"a\", expected one; the columns are a, b, a");
  EXPECT_EQ(ErrorOf("1,2,0\n", kClasses, {"a"}),
            "train.csv: line 1: found no columns \"a\", expected one; the columns are 1, 2, 0");
}

TEST_F(CsvFormatTest, RefusesATestFileOfAnotherTable) {
  Write("a,b,c\n1,2,0\n", "a,b\n1,0\n");
  EXPECT_EQ(Error(), "test.csv: 2 columns, expected 3 as in train.csv");
  Write("a,b,c\n1,2,0\n", "a,c,b\n1,2,0\n");
  EXPECT_EQ(Error(), "test.csv: expected the header of train.csv, or none in both files");
  Write("a,b,c\n1,2,0\n", "1,2,0\n");
  EXPECT_EQ(Error(), "test.csv: expected the header of train.csv, or none in both files");
  directory_.Remove("test.csv");
  EXPECT_EQ(Error(), "test.csv: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace slipstream
