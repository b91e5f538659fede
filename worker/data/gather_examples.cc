#include "worker/data/gather_examples.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

namespace slipstream {
namespace {

constexpr size_t kBytesOfThread = size_t{1} << 20;
constexpr size_t kThreadsMax = 4;

/// Those from `begin` to before `end`.
void GatherPart(const Dataset& from, std::span<const uint32_t> indices, const GatheredExamples& to,
                size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const std::span<const float> values = from.example(indices[i]);
    std::ranges::copy(values, to.examples.subspan(i * values.size()).begin());
    if (from.is_labelled()) to.labels[i] = from.labels[indices[i]];
    const std::span<const float> target = from.target(indices[i]);
    std::ranges::copy(target, to.targets.subspan(i * target.size()).begin());
  }
}

}  // namespace

size_t GatherThreads(size_t bytes) {
  const size_t others_left = std::thread::hardware_concurrency() / 2;
  return std::clamp<size_t>(std::min(bytes / kBytesOfThread, others_left), 1, kThreadsMax);
}

void GatherExamples(const Dataset& from, std::span<const uint32_t> indices,
                    const GatheredExamples& to, size_t threads) {
  const auto end_of = [&](size_t part) { return indices.size() * (part + 1) / threads; };
  // Last, as they use all else until they are joined. To begin one takes far less time than it has
  // something to do.
  std::vector<std::jthread> others;
  for (size_t part = 1; part < threads; ++part) {
    const auto gather = [&, part] {
      GatherPart(from, indices, to, end_of(part - 1), end_of(part));
    };
    try {
      others.emplace_back(gather);
    } catch (const std::system_error&) {
      gather();  // There are no more threads to be had.
    }
  }
  GatherPart(from, indices, to, 0, end_of(0));
}

}  // namespace slipstream
