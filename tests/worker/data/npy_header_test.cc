#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "worker/data/npy_file.h"

namespace slipstream {
namespace {

struct Good {
  std::string text;
  NpyHeader header;
  uint8_t version = 1;
};

class GoodHeaderTest : public testing::TestWithParam<Good> {};

TEST_P(GoodHeaderTest, IsRead) {
  const absl::StatusOr<NpyHeader> header = ParseNpyDictionary(GetParam().text, GetParam().version);

  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(*header, GetParam().header);
}

using Element = NpyHeader::Element;

INSTANTIATE_TEST_SUITE_P(
    Table, GoodHeaderTest,
    testing::Values(
        Good{"{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }      \n",
             {Element::kF4, {60000, 28, 28}}},
        Good{"{'descr': '|u1', 'fortran_order': False, 'shape': (7,), }", {Element::kU1, {7}}},
        Good{"{'descr': '|b1', 'fortran_order': False, 'shape': (7,), }", {Element::kB1, {7}}},
        // A byte has no order; = and | are the machine's own.
        Good{"{'descr': '<u1', 'fortran_order': False, 'shape': (7,), }", {Element::kU1, {7}}},
        Good{"{'descr': '>u1', 'fortran_order': False, 'shape': (7,), }", {Element::kU1, {7}}},
        Good{"{'descr': '=f4', 'fortran_order': False, 'shape': (7,), }", {Element::kF4, {7}}},
        Good{"{'descr': '|f4', 'fortran_order': False, 'shape': (7,), }", {Element::kF4, {7}}},
        Good{"{'descr': 'f4', 'fortran_order': False, 'shape': (7,), }", {Element::kF4, {7}}},
        Good{"{'descr': '<d', 'fortran_order': False, 'shape': (7,), }", {Element::kF8, {7}}},
        Good{"{'descr': '>i2', 'fortran_order': False, 'shape': (7,), }",
             {Element::kI2, {7}, false, true}},
        Good{"{'descr': '<f4', 'fortran_order': True, 'shape': (5, 4), }",
             {Element::kF4, {5, 4}, true}},
        Good{"{'descr': '<f4', 'fortran_order': False, 'shape': (5L, 4 L), }",
             {Element::kF4, {5, 4}}},
        Good{" \t{'descr': '<f4',\r\n\t'fortran_order': False, 'shape': (00, 4), }\f\n \n",
             {Element::kF4, {0, 4}}},
        Good{"{'descr': '<f8', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
             {Element::kF4, {3}}},
        Good{R"({"shape":(),"descr":"<i8","fortran_order":False})", {Element::kI8, {}}},
        Good{"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3)}", {Element::kF8, {0, 3}}}));

struct Bad {
  std::string text;
  std::string message;
  uint8_t version = 1;
};

class BadHeaderTest : public testing::TestWithParam<Bad> {};

TEST_P(BadHeaderTest, IsRefusedWithTheRemedyWhereThereIsOne) {
  const absl::Status status = ParseNpyDictionary(GetParam().text, GetParam().version).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(std::string(status.message()), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadHeaderTest,
    testing::Values(
        Bad{"", "header: is no dictionary"},
        Bad{"{'descr': '<f4'", "header: lacks a comma or its end"},
        Bad{"{'descr': '<f4', ", "header: is no dictionary of names"},
        Bad{"{'descr': '<f4' 'shape': (3,)}", "header: lacks a comma or its end"},
        Bad{"{'descr': '<f4', 'fortran_order': False}",
            "header: lacks descr, fortran_order or shape"},
        Bad{"{'descr': '<f4', 'order': '<f4', 'fortran_order': False, 'shape': (3,)}",
            "header: an entry other than descr, fortran_order and shape"},
        Bad{"\n {'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
            "header: is no dictionary"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}",
            "header: shape is no tuple of sizes"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (03,)}",
            "header: shape is no tuple of sizes"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (3L,)}",
            "header: shape is no tuple of sizes", 3},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "header: announces more values than any file has"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                fmt::format("{}", fmt::join(std::vector<int>(65, 1), ", ")) + ")}",
            "header: shape has 65 dimensions, expected at most 64"},
        Bad{"{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
            "header: fortran_order is not True or False"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, -1)}",
            "header: shape is no tuple of sizes"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
            "header: shape is no tuple of sizes"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': [3]}",
            "header: shape is no tuple of sizes"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} or True",
            "header: goes on behind its dictionary"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
            "header: announces more values than any file has"},
        Bad{"{'descr': '|O', 'fortran_order': False, 'shape': (3,)}",
            "holds Python objects, which are not read; save numbers, as "
            "array.astype(\"float32\")"},
        Bad{"{'descr': '<f2', 'fortran_order': False, 'shape': (3,)}",
            "holds values of type \"<f2\"; the types f4, f8, i1 to i8, u1 to u8 and b1 are read; "
            "save array.astype(\"float32\")"},
        Bad{"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
            "holds structured values; save each field as an array of numbers of its own"}));

std::string Bytes(const std::vector<int>& bytes) {
  std::string text = "\x93NUMPY";
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

TEST(NpyPreambleTest, IsReadInEveryVersion) {
  EXPECT_EQ(ParseNpyPreamble(Bytes({1, 0, 0x76, 0x01, '{', '\''}))->dictionary_bytes, 0x176u);
  EXPECT_EQ(ParseNpyPreamble(Bytes({1, 0, 0x76, 0x01, '{', '\''}))->bytes, 10u);
  EXPECT_EQ(ParseNpyPreamble(Bytes({2, 0, 0x76, 0x01, 0, 0}))->dictionary_bytes, 0x176u);
  EXPECT_EQ(ParseNpyPreamble(Bytes({3, 0, 0x76, 0x01, 0, 0}))->bytes, 12u);
  EXPECT_EQ(ParseNpyPreamble(Bytes({3, 0, 0x76, 0x01, 0, 0}))->version, 3u);
}

TEST(NpyPreambleTest, SaysWhatIsThereInItsPlace) {
  const auto message = [](const std::string& bytes) {
    const absl::Status status = ParseNpyPreamble(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    return std::string(status.message());
  };

  EXPECT_EQ(message(""), "is no .npy file: it does not begin with \\x93NUMPY");
  EXPECT_EQ(message("1.0,2.0,3"), "is no .npy file: it does not begin with \\x93NUMPY");
  EXPECT_EQ(message("\x1f\x8b\x08"), "is packed by gzip; unpack it first, with gzip -d");
  EXPECT_EQ(message("PK\x03\x04"),
            "is a .npz archive; save each array by itself with numpy.save(path, array)");
  EXPECT_EQ(message(Bytes({1, 0})), "truncated: no header");
  EXPECT_EQ(message(Bytes({2, 0, 1, 0})), "truncated: no header");
  EXPECT_EQ(message(Bytes({4, 0, 1, 0, 0, 0})), "has format 4.0, expected 1.0, 2.0 or 3.0");
  EXPECT_EQ(message(Bytes({2, 0, 0, 0, 0, 0x7f})),
            "announces a header of 2130706432 bytes, expected at most 10000");
}

}  // namespace
}  // namespace slipstream
