#include "common/model_file/model_header.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace slipstream {
namespace {

using testing::HasSubstr;

TensorLayout TwoTensors() {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("0.weight", {2, 3}).ok());
  EXPECT_TRUE(layout.Append("0.bias", {2}).ok());
  return layout;
}

TEST(ModelHeaderTest, IsTheJsonThatTheFormatPublishes) {
  EXPECT_EQ(EncodeModelHeader(TwoTensors(), {{"run", "demo"}, {"epoch", "5"}}),
            R"({"__metadata__":{"epoch":"5","run":"demo"},)"
            R"("0.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
            R"("0.bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]}}  )");
}

TEST(ModelHeaderTest, IsReadBackAsItWasWritten) {
  const ModelMetadata metadata = {{"name", "a \"quoted\"\nname, größer"}, {"empty", ""}};

  const auto header = ParseModelHeader(EncodeModelHeader(TwoTensors(), metadata), 32);

  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->layout, TwoTensors());
  EXPECT_EQ(header->metadata, metadata);
  EXPECT_EQ(EncodeModelHeader(TwoTensors(), metadata).size() % 8, 0u);
}

TEST(ModelHeaderTest, KeepsTextThatIsNotUtf8ReadableForOthers) {
  const auto header = ParseModelHeader(EncodeModelHeader(TwoTensors(), {{"run", "caf\xe9"}}), 32);

  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->metadata.at("run"), "caf\xef\xbf\xbd");
}

TEST(ModelHeaderTest, TakesAScalarAndAHeaderWithoutMetadata) {
  const auto header =
      ParseModelHeader(R"({"s": {"shape": [], "data_offsets": [0, 4], "dtype": "F32"}})", 4);

  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->layout.parameters(), 1u);
}

/// Returns the header entry of a tensor at `begin`.
std::string Entry(const std::string& name, int begin, const std::string& shape, int values) {
  return fmt::format(R"("{}":{{"dtype":"F32","shape":{},"data_offsets":[{},{}]}})", name, shape,
                     begin, begin + 4 * values);
}

TEST(ModelHeaderTest, TakesTensorsInAnyOrderAndPlacesThemByTheirData) {
  const auto header = ParseModelHeader(
      "{" + Entry("bias", 24, "[2]", 2) + "," + Entry("weight", 0, "[2,3]", 6) + "}", 32);

  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->layout.Find("weight")->offset, 0u);
  EXPECT_EQ(header->layout.Find("bias")->offset, 6u);
}

TEST(ModelHeaderTest, TakesMetadataThatAreNull) {
  const auto header =
      ParseModelHeader("{\"__metadata__\":null," + Entry("a", 0, "[2]", 2) + "}", 8);

  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_TRUE(header->metadata.empty());
}

TEST(ModelHeaderTest, LeavesOutTensorsWithoutValuesWhereverTheyLie) {
  const auto header = ParseModelHeader(
      "{" + Entry("a", 0, "[1]", 1) + "," + Entry("none", 4, "[0,4611686018427387904]", 0) + "," +
          Entry("b", 4, "[1]", 1) + "," + Entry("last", 8, "[0]", 0) + "}",
      8);

  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->layout.tensors().size(), 2u);
  EXPECT_EQ(header->layout.Find("b")->offset, 1u);
}

TEST(ModelHeaderTest, TakesHeadersWithoutTensorsWithSpaceInFrontAndWithMoreKeys) {
  EXPECT_TRUE(ParseModelHeader("{}", 0).ok());
  EXPECT_TRUE(ParseModelHeader(" \n{" + Entry("a", 0, "[2]", 2) + "}", 8).ok());
  EXPECT_TRUE(
      ParseModelHeader(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"order":"C","of":{"b":1}}})", 8)
          .ok());
}

struct BadHeader {
  std::string name;
  std::string json;
  std::string complaint;
};

class BadHeaderTest : public testing::TestWithParam<BadHeader> {};

TEST_P(BadHeaderTest, IsRefusedNamingTheTensorAndWhatIsWrong) {
  const auto header = ParseModelHeader(GetParam().json, 8);

  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(header.status().message()), HasSubstr(GetParam().complaint));
}

std::string Pair(const std::string& name, int begin) { return Entry(name, begin, "[2]", 2); }

std::string Only(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"({{"a":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape,
                     offsets);
}

const BadHeader kBadHeaders[] = {
    {"Empty", "", "does not begin with '{'"},
    {"ByteOrderMark", "\xef\xbb\xbf{}", "does not begin with '{'"},
    {"Array", "[]", "does not begin with '{'"},
    {"ZeroByte", "{" + Pair("a", 0) + "}" + std::string(1, '\0'), "has a zero byte"},
    {"CutOff", R"({"a":{"dtype":"F32")", "not JSON"},
    {"Trailing", "{" + Pair("a", 0) + "} x", "not JSON"},
    {"NotUtf8", "{\"\xff\":1}", "not JSON"},
    {"NoTensor", "{}", "8 bytes follow the data of the last tensor"},
    {"Number", R"({"a":1})", R"(tensor "a": is no object but 1)"},
    {"List", R"({"a":[1,2]})", R"(tensor "a": is no object but [1,2])"},
    {"NoDtype", R"({"a":{"shape":[2],"data_offsets":[0,8]}})", R"(tensor "a": has no "dtype")"},
    {"NoShape", R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", R"(has no "shape")"},
    {"NoOffsets", R"({"a":{"dtype":"F32","shape":[2]}})", R"(has no "data_offsets")"},
    {"KeyTwice", R"({"a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})",
     R"(tensor "a": "shape" is there twice)"},
    {"Half", Only(R"("F16")", "[4]", "[0,8]"), R"(tensor "a": dtype is "F16")"},
    {"DtypeNumber", Only("32", "[2]", "[0,8]"), "dtype is 32"},
    {"ShapeText", Only(R"("F32")", R"("2")", "[0,8]"), R"(shape is "2")"},
    {"ShapeNegative", Only(R"("F32")", "[-2]", "[0,8]"), "shape is [-2]"},
    {"ShapeFraction", Only(R"("F32")", "[2.0]", "[0,8]"), "shape is [2.0]"},
    {"ShapeNested", Only(R"("F32")", "[[2]]", "[0,8]"), "nests deeper"},
    {"ShapeZero", Only(R"("F32")", "[0]", "[0,8]"), "its shape [0] takes 0"},
    {"ShapeOverflows", Only(R"("F32")", "[4294967296,4294967296]", "[0,8]"),
     "its shape [4294967296, 4294967296] takes more than 64 bits count"},
    {"ShapeOverflowsBeforeZero", Only(R"("F32")", "[4294967296,4294967296,0]", "[0,0]"),
     "takes more than 64 bits count"},
    {"ShapeDimensions", Only(R"("F32")", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), "dimensions"},
    {"OffsetsOne", Only(R"("F32")", "[2]", "[8]"), "data_offsets are [8]"},
    {"OffsetsThree", Only(R"("F32")", "[2]", "[0,8,8]"), "data_offsets are [0,8,8]"},
    {"OffsetsBackwards", Only(R"("F32")", "[2]", "[8,0]"), "data_offsets are [8,0]"},
    {"OffsetsNegative", Only(R"("F32")", "[2]", "[-8,0]"), "data_offsets are [-8,0]"},
    {"OffsetsHuge", Only(R"("F32")", "[2]", "[0,18446744073709551616]"), "data_offsets are"},
    {"ProductTooLarge", Only(R"("F32")", "[3]", "[0,8]"),
     R"(tensor "a": has 8 bytes of data, and its shape [3] takes 12)"},
    {"ProductTooSmall", Only(R"("F32")", "[1,1]", "[0,8]"), "its shape [1, 1] takes 4"},
    {"BeyondTheFile", Only(R"("F32")", "[3]", "[0,12]"),
     R"(tensor "a": truncated: its data end at byte 12, and the file has 8 bytes of data)"},
    {"TrailingBytes", Only(R"("F32")", "[1]", "[0,4]"), "4 bytes follow the data of the last"},
    {"NotAtTheBeginning", Only(R"("F32")", "[1]", "[4,8]"),
     R"(tensor "a": its data begin at byte 4)"},
    {"Overlap", "{" + Pair("a", 0) + "," + Pair("b", 4) + "}",
     R"(tensor "b": its data begin at byte 4, and those of the tensor before it end at 8)"},
    {"Gap", "{" + Pair("a", 0) + "," + Pair("b", 12) + "}",
     R"(tensor "b": its data begin at byte 12, and those of the tensor before it end at 8)"},
    {"ValuelessInAnother", "{" + Pair("a", 0) + "," + Entry("b", 4, "[0]", 0) + "}",
     R"(tensor "b": its data begin at byte 4, and those of the tensor before it end at 8)"},
    {"TensorTwice", "{" + Pair("a", 0) + "," + Pair("a", 0) + "}", R"(tensor "a": is there twice)"},
    {"NoName", "{" + Pair("", 0) + "}", "a tensor needs a name"},
    {"MetadataList", R"({"__metadata__":[],)" + Pair("a", 0) + "}", "__metadata__ is no object"},
    {"MetadataNumber", R"({"__metadata__":{"epoch":5},)" + Pair("a", 0) + "}",
     R"(__metadata__: "epoch" is no text but 5)"},
    {"MetadataTwice", R"({"__metadata__":null,"__metadata__":{},)" + Pair("a", 0) + "}",
     R"("__metadata__": is there twice)"},
    {"MetadataKeyTwice", R"({"__metadata__":{"a":"1","a":"2"},)" + Pair("a", 0) + "}",
     R"("a" is there twice)"},
    {"NestedWithoutEnd", R"({"a":)" + std::string(100'000, '['), "nests deeper"},
};

INSTANTIATE_TEST_SUITE_P(Table, BadHeaderTest, testing::ValuesIn(kBadHeaders),
                         [](const auto& param) { return param.param.name; });

TEST(ModelHeaderTest, NoChangedByteIsReadAsAnotherModelOfTheSameBytes) {
  const std::string sound = EncodeModelHeader(TwoTensors(), {});
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::string json = sound;
    json[random() % json.size()] = static_cast<char>(random());

    const auto header = ParseModelHeader(json, 32);

    if (!header.ok()) continue;
    ASSERT_EQ(header->layout.parameters(), 8u);
  }
}

}  // namespace
}  // namespace slipstream
