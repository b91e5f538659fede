#include "deploy/psctl/config/yaml_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

TEST(YamlJsonTest, WritesBlockStyle) {
  const Json value = {{"name", "a: b"},
                      {"loss", 1e-5},
                      {"none", nullptr},
                      {"empty", Json::array()},
                      {"staleness", {{"mean", 0.5}, {"histogram", {1, 2}}}},
                      {"workers", {{{"worker", 0}, {"state", "live"}}}}};

  EXPECT_EQ(JsonToYaml(value),
            "name: \"a: b\"\n"
            "loss: 1.0e-05\n"
            "none: null\n"
            "empty: []\n"
            "staleness:\n"
            "  mean: 0.5\n"
            "  histogram: [1, 2]\n"
            "workers:\n"
            "  -\n"
            "    worker: 0\n"
            "    state: \"live\"\n");
}

TEST(YamlJsonTest, ReadsBackWhatItWrote) {
  const Json value = {{"text", "12"},
                      {"number", 12},
                      {"yes", true},
                      {"half", -0.5},
                      {"lists", {{1, 2}, {3}}},
                      {"hash", "1e5"},
                      {"object", Json::object()}};

  EXPECT_EQ(YamlToJson(JsonToYaml(value)), value);
}

TEST(YamlJsonTest, TakesPlainWordsForStrings) {
  EXPECT_EQ(YamlToJson("a: 5s\nb: softsync\nc: [localhost:7070, 3]\n").dump(),
            R"({"a":"5s","b":"softsync","c":["localhost:7070",3]})");
}

}  // namespace
}  // namespace slipstream
