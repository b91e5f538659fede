// The function that libFuzzer calls. The variable SLIPSTREAM_FUZZER, which run.sh sets, names the
// fuzzer.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/fuzz_target.h"

namespace slipstream {
namespace {

const FuzzTarget& Chosen() {
  const char* const name = std::getenv("SLIPSTREAM_FUZZER");
  const FuzzTarget* const found = FindFuzzTarget(name != nullptr ? name : "");
  if (found != nullptr) return *found;
  std::fprintf(stderr, "SLIPSTREAM_FUZZER has to be one of:");
  for (const FuzzTarget& target : FuzzTargets()) {
    std::fprintf(stderr, " %.*s", static_cast<int>(target.name.size()), target.name.data());
  }
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace
}  // namespace slipstream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const slipstream::FuzzTarget& target = slipstream::Chosen();
  target.run(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
