#include "common/json/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace slipstream {
namespace {

TEST(JsonTextTest, WritesTextThatIsNotUtf8AsFarAsItIs) {
  const nlohmann::ordered_json json = {{"name", "caf\xE9"}};

  EXPECT_EQ(JsonCompact(json), "{\"name\":\"caf\uFFFD\"}");
  EXPECT_EQ(JsonLine(json), "{\"name\":\"caf\uFFFD\"}\n");
  EXPECT_EQ(JsonText(json), "{\n  \"name\": \"caf\uFFFD\"\n}\n");
}

TEST(JsonTextTest, KeepsOtherCharactersAsTheyAre) {
  EXPECT_EQ(JsonCompact(nlohmann::json("λ\n")), "\"λ\\n\"");
}

TEST(JsonTextTest, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(JsonCompact(nlohmann::json("\u009B2J \x1b \x7F \u00A0")),
            "\"\\u009b2J \\u001b \\u007f \u00A0\"");
  EXPECT_EQ(nlohmann::json::parse(JsonText(nlohmann::json("\u0085"))), "\u0085");
}

}  // namespace
}  // namespace slipstream
