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

}  // namespace
}  // namespace slipstream
