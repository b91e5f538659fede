#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/config/combination_checks.h"
#include "common/config/run_config.h"

namespace slipstream {
namespace {

/// Each golden/NAME.yaml is a wrong configuration, and NAME.errors is the expected list of errors.
/// Comment lines at the top that begin with `# --set ` or `# environment ` are overrides.
/// To record the expected errors anew:
///   RECORD_GOLDEN=1 bazel run //tests/common/config

constexpr const char* kFolder = "tests/common/config/golden";

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::filesystem::path> Cases() {
  std::vector<std::filesystem::path> cases;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") cases.push_back(entry.path());
  }
  std::ranges::sort(cases);
  return cases;
}

Overrides OverridesIn(const std::string& text) {
  const std::string flag = "# --set ";
  const std::string variable = "# environment ";
  Overrides overrides;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(flag)) overrides.set.push_back(line.substr(flag.size()));
    if (!line.starts_with(variable)) continue;
    const size_t equals = line.find('=');
    overrides.environment[line.substr(variable.size(), equals - variable.size())] =
        line.substr(equals + 1);
  }
  return overrides;
}

std::string ErrorsOf(const std::filesystem::path& path) {
  const std::string text = ReadFile(path);
  const ConfigResult result = ParseRunConfig(text, "run.yaml", OverridesIn(text));
  const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result);
  return diagnostics == nullptr ? "no errors\n" : ToString(*diagnostics);
}

/// Writes what is expected from now on, if that is asked for.
void Record(const std::filesystem::path& path, const std::string& text) {
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (std::getenv("RECORD_GOLDEN") == nullptr || workspace == nullptr) return;
  std::ofstream(std::filesystem::path(workspace) / path, std::ios::binary) << text;
}

class GoldenTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(GoldenTest, ReportsEveryErrorAtItsPlaceInOnePass) {
  std::filesystem::path expected = GetParam();
  expected.replace_extension(".errors");
  const std::string errors = ErrorsOf(GetParam());

  Record(expected, errors);
  EXPECT_NE(errors, "no errors\n");
  EXPECT_EQ(errors, ReadFile(expected))
      << "of " << GetParam() << "; to record all: RECORD_GOLDEN=1 bazel run //tests/common/config";
}

INSTANTIATE_TEST_SUITE_P(Folder, GoldenTest, testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.stem().string(); });

/// The page of the documentation is the table that the errors are made from.
TEST(CombinationsTest, TheDocumentationHasTheTable) {
  const std::string page = "deploy/docs/combinations.md";
  const std::string text =
      "# What goes with what\n\n`psctl validate` refuses a run with two settings that do not go "
      "together. This table is made from the one that it looks\nthem up in: `RECORD_GOLDEN=1 bazel "
      "run //tests/common/config` writes it.\n\n" +
      CombinationsTable();
  Record(page, text);
  EXPECT_EQ(text, ReadFile(page)) << "to record: RECORD_GOLDEN=1 bazel run //tests/common/config";
}

/// A remedy that lists values has some to list.
TEST(CombinationsTest, EachRemedyNamesValues) {
  for (const Combination& combination : Combinations()) {
    for (const auto& [mark, values] :
         {std::pair("{first}", combination.first), std::pair("{second}", combination.second)}) {
      if (combination.remedy.find(mark) == std::string_view::npos) continue;
      EXPECT_FALSE(NamesOf(values, RunSpec(), false).empty()) << values.key;
    }
  }
}

}  // namespace
}  // namespace slipstream
