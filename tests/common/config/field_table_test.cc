#include "common/config/field_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace slipstream {
namespace {

TEST(FieldTableTest, PathsAndEnvironmentNamesAreUnique) {
  std::set<std::string> paths;
  std::set<std::string> names;
  for (const Field& field : Fields()) {
    EXPECT_TRUE(paths.insert(field.path).second) << field.path;
    EXPECT_TRUE(names.insert(field.EnvironmentName()).second) << field.EnvironmentName();
    EXPECT_FALSE(field.doc.empty()) << field.path;
  }
  EXPECT_TRUE(names.contains("PS_OPTIMIZER_SCHEDULE_AT_EPOCHS"));
}

TEST(FieldTableTest, AConditionNamesChoicesOfAnEarlierKey) {
  for (size_t i = 0; i < Fields().size(); ++i) {
    const Field& field = Fields()[i];
    if (!field.condition) continue;
    const Field* decider = FindField(field.condition->path);
    ASSERT_NE(decider, nullptr) << field.path;
    EXPECT_LT(decider - Fields().data(), static_cast<std::ptrdiff_t>(i)) << field.path;
    const auto& choices = std::get<ChoiceType>(std::get<ScalarType>(decider->type)).names;
    for (const std::string& choice : field.condition->choices) {
      EXPECT_EQ(std::ranges::count(choices, choice), 1) << field.path;
    }
  }
}

TEST(FieldTableTest, EveryDefaultReadsBackUnlessItMeansNone) {
  const std::set<std::string> none = {"model.preset", "model.input", "model.layers",
                                      "optimizer.schedule.at_epochs"};
  for (const Field& field : Fields()) {
    if (none.contains(field.path)) continue;
    DiagnosticList diagnostics;
    const std::string text = field.path + ": " + WriteField(field.type, field.default_value());
    const auto tree = ParseYaml(text, "defaults", diagnostics);
    ASSERT_TRUE(tree) << text;
    const auto value = ReadField(field.path, field.type, tree->entries.at(0).value, diagnostics);
    ASSERT_TRUE(value) << diagnostics.Sorted().at(0).ToString();
    EXPECT_EQ(*value, field.default_value()) << text;
  }
}

TEST(FieldTableTest, KeysOfASectionStandTogether) {
  std::vector<std::string> order;
  for (const Field& field : Fields()) {
    const std::string section = field.path.substr(0, field.path.find('.'));
    if (order.empty() || order.back() != section) order.push_back(section);
  }
  EXPECT_EQ(std::set<std::string>(order.begin(), order.end()).size(), order.size());
  EXPECT_EQ(order, KeysOf(""));
}

TEST(FieldTableTest, AFlagThatStandsForAKeyTakesWhatTheKeyDoes) {
  EXPECT_EQ(FlagError("log.level", "warning"), "");
  EXPECT_EQ(FlagError("log.level", "loud"), "must be debug, info, warning or error, not \"loud\"");
  EXPECT_EQ(FlagError("log.format", ""), "must be text or json, not \"\"");
}

TEST(FieldTableTest, SectionsAndTheirKeysAreFound) {
  EXPECT_TRUE(IsSection("optimizer.schedule"));
  EXPECT_FALSE(IsSection("optim"));
  EXPECT_FALSE(IsSection("seed"));
  EXPECT_FALSE(IsSection(""));
  EXPECT_EQ(KeysOf("training"),
            (std::vector<std::string>{"work", "batch_size", "epochs", "max_steps", "max_seconds",
                                      "target_accuracy", "nonfinite_max", "pipeline_depth",
                                      "start_from"}));
}

}  // namespace
}  // namespace slipstream
