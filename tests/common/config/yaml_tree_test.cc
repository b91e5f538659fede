#include "common/config/yaml_tree.h"

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "common/config/run_config.h"
#include "common/config/run_text.h"
#include "common/model/presets.h"

namespace slipstream {
namespace {

TEST(YamlTreeTest, KeepsScalarsAsTextWithTheirPlaces) {
  DiagnosticList diagnostics;

  const auto root = ParseYaml("a: 0777\nb:\n  - yes\n  - 'yes'\n", "f", diagnostics);

  ASSERT_TRUE(root && diagnostics.empty());
  EXPECT_EQ(root->entries[0].value.text, "0777");
  EXPECT_EQ(root->entries[0].value.source, (Source{"f", 1, 4}));
  EXPECT_EQ(root->entries[1].key_source, (Source{"f", 2, 1}));
  EXPECT_FALSE(root->entries[1].value.items[0].is_quoted);
  EXPECT_TRUE(root->entries[1].value.items[1].is_quoted);
  EXPECT_EQ(root->entries[1].value.items[1].source, (Source{"f", 4, 5}));
}

TEST(YamlTreeTest, RefusesTextOverTheBoundBeforeReadingIt) {
  DiagnosticList diagnostics;

  EXPECT_FALSE(ParseYaml(std::string((1 << 20) + 1, ' '), "f", diagnostics));

  EXPECT_EQ(diagnostics.Sorted().size(), 1u);
}

TEST(YamlTreeTest, KnowsMapsBetweenBraces) {
  DiagnosticList diagnostics;

  const auto root = ParseYaml("a: {b: 1}\n", "f", diagnostics);

  ASSERT_TRUE(root && diagnostics.empty());
  EXPECT_FALSE(root->is_flow);
  EXPECT_TRUE(root->entries[0].value.is_flow);
}

TEST(YamlTreeTest, RefusesTextThatIsNotUtf8AtTheFirstWrongByte) {
  DiagnosticList diagnostics;

  EXPECT_FALSE(ParseYaml("a: ö\nb: \xFC\nc: \xFC\n", "f", diagnostics));

  ASSERT_EQ(diagnostics.Sorted().size(), 1u);
  EXPECT_EQ(diagnostics.Sorted()[0].ToString(),
            "f:2:4: error: not UTF-8 (byte 0xFC): save the file as UTF-8");
}

TEST(YamlTreeTest, ReadsTextThatIsMarkedAsUtf16) {
  DiagnosticList diagnostics;
  const char text[] =
      "\xFF\xFE"
      "a\0:\0 \0b\0\n";  // The literal's terminating 0 is the last byte.

  const auto root = ParseYaml({text, sizeof text}, "f", diagnostics);

  ASSERT_TRUE(root && diagnostics.empty());
  ASSERT_EQ(root->entries.size(), 1u);
  EXPECT_EQ(root->entries[0].key, "a");
  EXPECT_EQ(root->entries[0].value.text, "b");
}

TEST(YamlTreeTest, RefusesDeepNestingWithoutExhaustingTheStack) {
  for (const char* open : {"[", "{a: ", "- ", "? "}) {
    DiagnosticList diagnostics;
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += open;
    EXPECT_FALSE(ParseYaml(text, "f", diagnostics)) << open;
    EXPECT_FALSE(diagnostics.empty()) << open;
  }
}

TEST(YamlTreeTest, AFloodOfErrorsIsCutShort) {
  DiagnosticList diagnostics;
  std::string text;
  for (int i = 0; i < 1'000; ++i) text += "a: 1\n";

  ASSERT_TRUE(ParseYaml(text, "f", diagnostics));

  const std::vector<Diagnostic> sorted = diagnostics.Sorted();
  ASSERT_EQ(sorted.size(), DiagnosticList::kDiagnosticsMax + 1);
  EXPECT_EQ(sorted.back().message, "and 899 more errors");
}

/// Returns the text with some bytes changed, left out or doubled.
std::string Mutated(std::string text, RandomStream& random) {
  const std::string bytes = "{}[]:,-?&*!|>'\"%@`# \n\t0a\\\x01\xff";
  for (uint32_t change = 1 + random.Below(8); change > 0 && !text.empty(); --change) {
    const uint32_t position = random.Below(static_cast<uint32_t>(text.size()));
    const char byte = bytes[random.Below(static_cast<uint32_t>(bytes.size()))];
    switch (random.Below(4)) {
      case 0:
        text[position] = byte;
        break;
      case 1:
        text.insert(position, 1, byte);
        break;
      case 2:
        text.erase(position, 1 + random.Below(10));
        break;
      default:
        text.insert(position, text.substr(position, random.Below(40)));
    }
  }
  return text;
}

TEST(YamlTreeTest, AnyDamagedFileGivesARunOrErrors) {
  RunSpec by_hand;
  by_hand.model = *FindPreset("lenet5");
  by_hand.model.preset.clear();
  const std::string texts[] = {ConfigTemplate(), ToYaml(by_hand)};
  for (uint64_t seed = 0; seed < 1'500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);

    const ConfigResult result = ParseRunConfig(Mutated(texts[seed % 2], random), "run.yaml");

    if (const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result)) {
      ASSERT_FALSE(diagnostics->empty());
      for (const Diagnostic& diagnostic : *diagnostics) ASSERT_GT(diagnostic.source.line, 0);
    } else {
      // Every accepted text has a canonical form.
      const RunSpec& spec = std::get<RunSpec>(result);
      ASSERT_EQ(std::get<RunSpec>(ParseRunConfig(ToYaml(spec), "again")), spec);
    }
  }
}

}  // namespace
}  // namespace slipstream
