#include "tests/benchmarks/exchange_commands.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

namespace slipstream::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double Median(std::vector<double>& seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

absl::Status Run(const std::function<absl::Status()>& exchange, uint64_t count) {
  std::vector<double> seconds(count);
  const Clock::time_point begin = Clock::now();
  for (double& one : seconds) {
    const Clock::time_point begun = Clock::now();
    if (absl::Status status = exchange(); !status.ok()) return status;
    one = Since(begun);
  }
  const double total = Since(begin);
  std::cout << "done " << total << " " << Median(seconds) << std::endl;
  return absl::OkStatus();
}

}  // namespace

int ServeCommands(const std::function<absl::Status()>& exchange) {
  constexpr uint64_t kExchangesMax = 10'000'000;  // Bounds memory: each one's time is kept.
  std::cout.precision(9);
  std::cout << "ready" << std::endl;
  std::string command;
  uint64_t count = 0;
  while (std::cin >> command >> count) {
    absl::Status status = command == "run" && count > 0 && count <= kExchangesMax
                              ? Run(exchange, count)
                              : absl::InvalidArgumentError("commands are: run N");
    if (status.ok()) continue;
    std::cout << "failed " << status.message() << std::endl;
    return 1;
  }
  return 0;
}

void AwaitEndOfCommands() {
  while (std::cin.get() != std::char_traits<char>::eof()) {
  }
}

}  // namespace slipstream::benchmarks
