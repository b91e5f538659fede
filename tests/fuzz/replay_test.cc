// Feeds every parser its corpus in the source tree, and random changes of that corpus. A real
// fuzzer runs far longer and is guided by coverage; see run.sh. This test makes sure that bugs
// found by fuzzers stay fixed.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

// The callback is called before a sanitizer ends the process. The function is null without a
// sanitizer.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace slipstream {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kChangesOfEach = 200;

// Describes the current input, for the message when the process ends.
char now_running[1024] = "";

void TellInput() { (void)std::fputs(now_running, stderr); }

void OnSignal(int signal) {
  TellInput();
  (void)std::signal(signal, SIG_DFL);
  (void)std::raise(signal);
}

/// Prints the current input if the parser ends the process.
void TellInputOnDeath() {
  (void)std::signal(SIGABRT, OnSignal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(TellInput);
    return;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) (void)std::signal(signal, OnSignal);
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> CorpusOf(const FuzzTarget& target) {
  std::vector<fs::path> paths;
  const fs::path folder = fs::path("tests/fuzz/corpus") / target.name;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

/// Runs the input from memory of exactly its size, so that AddressSanitizer notices reads beyond
/// its end.
void Feed(const FuzzTarget& target, const std::string& input) {
  const std::unique_ptr<char[]> bytes(new char[input.size()]);
  std::ranges::copy(input, bytes.get());
  target.run({bytes.get(), input.size()});
}

/// Returns the input with one change, such as fuzzers make.
std::string Changed(std::string input, std::mt19937_64& random) {
  constexpr uint8_t kTelling[] = {0, 1, 0x7f, 0x80, 0xff, '\n', '"', '0'};
  const size_t size = input.size();
  const size_t at = random() % (size + 1);
  const size_t count = std::min<size_t>(1 + random() % 16, size - at);
  const auto byte = static_cast<char>(kTelling[random() % std::size(kTelling)]);
  switch (random() % 6) {
    case 0:
      return input.substr(0, at);
    case 1:
      if (at < size) input[at] = static_cast<char>(input[at] ^ (1 << (random() % 8)));
      return input;
    case 2:
      return input.replace(at, count, count, byte);
    case 3:
      return input.erase(at, count);
    case 4:
      return input.insert(at, 1 + random() % 16, byte);
    default:
      return input.insert(random() % (size + 1), input.substr(at, count));
  }
}

class ReplayTest : public testing::TestWithParam<FuzzTarget> {};

TEST_P(ReplayTest, TakesItsCorpusAndWhatIsLikeIt) {
  const FuzzTarget& target = GetParam();
  TellInputOnDeath();
  const std::vector<fs::path> corpus = CorpusOf(target);
  ASSERT_FALSE(corpus.empty());
  for (const fs::path& path : corpus) {
    const std::string seed_input = ReadFile(path);
    for (uint64_t seed = 0; seed <= kChangesOfEach; ++seed) {
      (void)std::snprintf(now_running, sizeof(now_running),
                          "the input was %s, changed with seed %llu (0: unchanged)\n", path.c_str(),
                          static_cast<unsigned long long>(seed));
      std::mt19937_64 random(seed);
      std::string input = seed_input;
      for (uint64_t changes = seed == 0 ? 0 : 1 + seed % 3; changes > 0; --changes) {
        input = Changed(std::move(input), random);
      }
      Feed(target, input);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parsers, ReplayTest,
                         testing::ValuesIn(FuzzTargets().begin(), FuzzTargets().end()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(CorpusTest, EveryCorpusHasAParser) {
  for (const auto& entry : fs::directory_iterator("tests/fuzz/corpus")) {
    EXPECT_NE(FindFuzzTarget(entry.path().filename().string()), nullptr) << entry.path();
  }
}

}  // namespace
}  // namespace slipstream
