#include "tests/gpu/simulated/kernel_threads.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "common/base/check.h"

namespace slipstream::simulated {
namespace {

constexpr unsigned kWarp = 32;
constexpr size_t kStackBytes = size_t{64} << 10;

/// A place where threads wait until as many as expected have come.
struct Barrier {
  unsigned expected = 0;
  std::vector<size_t> waiting;  // Indices of fibers.
};

struct Warp {
  Barrier barrier;
  // There are two, as some lanes give their next value before all lanes have read the last one.
  std::array<std::array<std::array<std::byte, 8>, kWarp>, 2> given;
};

/// A stack on which threads of a block run, one after another. A thread that waits keeps its stack.
struct Fiber {
  ucontext_t context = {};
  std::unique_ptr<std::byte[]> stack = std::make_unique<std::byte[]>(kStackBytes);
  bool is_idle = true;
  unsigned thread = 0;  // The block's thread that runs on it, if not idle.
};

/// Runs the blocks of a grid, one after another.
class Block {
 public:
  Block(dim3 blocks, dim3 threads, const std::function<void()>& body)
      : body_(body), size_(threads.x * threads.y * threads.z), exchanges_(size_) {
    place_.grid = blocks;
    place_.block = threads;
  }

  void Run(dim3 index);
  const Place& place() const { return place_; }
  void AwaitAll() { WaitAt(all_); }
  void Exchange(void* value, size_t bytes, unsigned distance);

 private:
  static void Enter(unsigned low, unsigned high);
  void RunThreads(Fiber& fiber);
  Fiber& IdleFiber();
  void Resume(size_t fiber);
  void WaitAt(Barrier& barrier);
  void Release(Barrier& barrier);
  void OnEnd();

  const std::function<void()>& body_;
  const unsigned size_;

  Place place_;
  std::minstd_rand random_;
  bool is_reversed_ = false;  // Whether threads begin from the last to the first.
  unsigned next_ = 0;         // The number of threads that have begun.
  unsigned ended_ = 0;
  size_t current_ = 0;
  ucontext_t scheduler_ = {};
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::deque<size_t> runnable_;  // Fibers whose barrier has opened.
  Barrier all_;
  std::vector<Warp> warps_;
  std::vector<unsigned> exchanges_;  // Exchanges made by each thread.
};

thread_local Block* block_at_work = nullptr;

void Block::Run(dim3 index) {
  place_.block_index = index;
  is_reversed_ = random_() % 2 == 0;
  next_ = 0;
  ended_ = 0;
  all_ = {.expected = size_, .waiting = {}};
  warps_.assign((size_ + kWarp - 1) / kWarp, {});
  for (unsigned i = 0; i < size_; ++i) ++warps_[i / kWarp].barrier.expected;
  while (ended_ < size_) {
    if (!runnable_.empty()) {
      const size_t fiber = runnable_.front();
      runnable_.pop_front();
      Resume(fiber);
    } else {
      // If all threads have begun, some wait for threads of their block or warp that took another
      // branch.
      PS_CHECK(next_ < size_);
      IdleFiber();
      Resume(current_);
    }
  }
}

Fiber& Block::IdleFiber() {
  for (current_ = 0; current_ < fibers_.size(); ++current_) {
    if (fibers_[current_]->is_idle) return *fibers_[current_];
  }
  Fiber& fiber = *fibers_.emplace_back(std::make_unique<Fiber>());
  getcontext(&fiber.context);
  fiber.context.uc_stack = {.ss_sp = fiber.stack.get(), .ss_flags = 0, .ss_size = kStackBytes};
  fiber.context.uc_link = nullptr;
  // makecontext passes arguments of type int.
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&fiber.context, reinterpret_cast<void (*)()>(&Block::Enter), 2,
              static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
  return fiber;
}

void Block::Enter(unsigned low, unsigned high) {
  auto* block = reinterpret_cast<Block*>(uintptr_t{high} << 32 | low);
  block->RunThreads(*block->fibers_[block->current_]);
}

// Never returns. When no thread is left to begin, the fiber rests until the next block.
void Block::RunThreads(Fiber& fiber) {
  while (true) {
    while (next_ < size_) {
      fiber.is_idle = false;
      fiber.thread = is_reversed_ ? size_ - 1 - next_ : next_;
      ++next_;
      place_.thread_index = {fiber.thread % place_.block.x,
                             fiber.thread / place_.block.x % place_.block.y,
                             fiber.thread / place_.block.x / place_.block.y};
      body_();
      OnEnd();
    }
    fiber.is_idle = true;
    swapcontext(&fiber.context, &scheduler_);
  }
}

void Block::Resume(size_t fiber) {
  current_ = fiber;
  swapcontext(&scheduler_, &fibers_[fiber]->context);
}

void Block::WaitAt(Barrier& barrier) {
  Fiber& fiber = *fibers_[current_];
  const size_t self = current_;
  const dim3 thread_index = place_.thread_index;
  barrier.waiting.push_back(self);
  Release(barrier);
  swapcontext(&fiber.context, &scheduler_);
  place_.thread_index = thread_index;
}

void Block::Release(Barrier& barrier) {
  if (barrier.waiting.size() < barrier.expected) return;
  std::ranges::shuffle(barrier.waiting, random_);
  runnable_.insert(runnable_.end(), barrier.waiting.begin(), barrier.waiting.end());
  barrier.waiting.clear();
}

// The thread's warp still expects it, since the value that it would give to a shuffle is undefined.
void Block::OnEnd() {
  ++ended_;
  --all_.expected;
  if (!all_.waiting.empty()) Release(all_);
}

void Block::Exchange(void* value, size_t bytes, unsigned distance) {
  const unsigned thread = fibers_[current_]->thread;
  Warp& warp = warps_[thread / kWarp];
  auto& given = warp.given[exchanges_[thread]++ % 2];
  std::memcpy(given[thread % kWarp].data(), value, bytes);
  WaitAt(warp.barrier);
  std::memcpy(value, given[(thread ^ distance) % kWarp].data(), bytes);
}

}  // namespace

void RunGrid(dim3 blocks, dim3 threads, const std::function<void()>& body) {
  PS_CHECK(blocks.x * blocks.y * blocks.z > 0 && threads.x * threads.y * threads.z <= 1024);
  Block block(blocks, threads, body);
  block_at_work = &block;
  for (unsigned z = 0; z < blocks.z; ++z) {
    for (unsigned y = 0; y < blocks.y; ++y) {
      for (unsigned x = 0; x < blocks.x; ++x) block.Run({x, y, z});
    }
  }
  block_at_work = nullptr;
}

const Place& Here() { return block_at_work->place(); }

void AwaitBlock() { block_at_work->AwaitAll(); }

void ExchangeInWarp(void* value, size_t bytes, unsigned distance) {
  block_at_work->Exchange(value, bytes, distance);
}

}  // namespace slipstream::simulated
