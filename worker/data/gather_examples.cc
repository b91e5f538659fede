#include "worker/data/gather_examples.h"

#include <algorithm>
#include <system_error>

namespace slipstream {
namespace {

constexpr size_t kBytesOfThread = size_t{256} << 10;
constexpr size_t kThreadsMax = 8;

/// Copies the examples from position `begin` up to `end`.
void GatherPart(const Dataset& from, std::span<const uint32_t> indices, const GatheredExamples& to,
                size_t begin, size_t end) {
  const size_t elements = from.shape.elements();
  for (size_t i = begin; i < end; ++i) {
    from.examples.Read(indices[i] * elements, to.examples.subspan(i * elements, elements));
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

ExampleGatherer::~ExampleGatherer() {
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void ExampleGatherer::Gather(const Dataset& from, std::span<const uint32_t> indices,
                             const GatheredExamples& to, size_t threads) {
  Begin(threads - 1);
  const size_t others = std::min(threads - 1, threads_.size());
  const auto end_of = [&](size_t part) { return indices.size() * (part + 1) / (others + 1); };
  const auto gather = [&](size_t part) {
    GatherPart(from, indices, to, end_of(part), end_of(part + 1));
  };
  if (others > 0) {
    MutexLock lock(mutex_);
    work_ = gather;
    ++number_;
    parts_ = parts_left_ = others;
    changed_.NotifyAll();
  }
  GatherPart(from, indices, to, 0, end_of(0));
  MutexLock lock(mutex_);
  while (parts_left_ > 0) changed_.Wait(mutex_);
}

void ExampleGatherer::Begin(size_t threads) {
  while (threads_.size() < threads) {
    const size_t index = threads_.size();
    try {
      threads_.emplace_back([this, index] { Run(index); });
    } catch (const std::system_error&) {
      return;
    }
  }
}

void ExampleGatherer::Run(size_t index) {
  uint64_t done = 0;
  while (true) {
    std::function<void(size_t)> work;
    {
      MutexLock lock(mutex_);
      while (!is_ending_ && (number_ == done || index >= parts_)) {
        // Mark work in which this thread has no part as seen.
        done = number_;
        changed_.Wait(mutex_);
      }
      if (is_ending_) return;
      done = number_;
      work = work_;
    }
    work(index);
    MutexLock lock(mutex_);
    if (--parts_left_ == 0) changed_.NotifyAll();
  }
}

}  // namespace slipstream
