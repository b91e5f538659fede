#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/scripted_run.h"
#include "tests/simulation/simulation.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

/// Each file of the folder is a transcript: of a seed, seed_N.txt, whatever happens in it; or of a
/// script, whose commands stand in the file with what each brings about. A difference is a change
/// of behaviour, or of words. If it is meant, record the transcripts anew and read the differences:
///   RECORD_GOLDEN=1 bazel run //tests/simulation
constexpr const char* kFolder = "tests/simulation/scenarios";
constexpr std::string_view kSeed = "seed_";

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> Transcripts() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kFolder)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string TranscriptOfSeed(uint64_t seed) {
  std::ostringstream trace;
  const Simulated simulated = Simulate(seed, &trace);
  EXPECT_TRUE(simulated.findings.empty()) << Report(simulated);
  return trace.str();
}

/// Returns the first line of `now` that `before` does not have, with the line that it has there.
std::string FirstDifference(const std::string& before, const std::string& now) {
  std::istringstream old_lines(before);
  std::istringstream new_lines(now);
  std::string expected;
  std::string line;
  for (int number = 1; std::getline(new_lines, line); ++number) {
    if (!std::getline(old_lines, expected)) expected = "the end";
    if (line != expected) {
      return "line " + std::to_string(number) + "\n  was: " + expected + "\n  is:  " + line;
    }
  }
  return std::getline(old_lines, expected) ? "the end\n  was: " + expected : "";
}

class TranscriptsTest : public testing::TestWithParam<fs::path> {};

TEST_P(TranscriptsTest, HoldsStill) {
  const std::string before = ReadFile(GetParam());
  const std::string name = GetParam().stem().string();
  const std::string now = name.starts_with(kSeed)
                              ? TranscriptOfSeed(std::stoull(name.substr(kSeed.size())))
                              : TranscriptOfScript(before);

  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (std::getenv("RECORD_GOLDEN") != nullptr && workspace != nullptr) {
    std::ofstream(fs::path(workspace) / GetParam(), std::ios::binary) << now;
    return;
  }

  EXPECT_EQ(FirstDifference(before, now), "")
      << GetParam().string()
      << "; to record all anew: RECORD_GOLDEN=1 bazel run //tests/simulation";
}

INSTANTIATE_TEST_SUITE_P(Scenarios, TranscriptsTest, testing::ValuesIn(Transcripts()),
                         [](const auto& test) { return test.param.stem().string(); });

}  // namespace
}  // namespace slipstream
