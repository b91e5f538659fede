#include "tests/gpu/simulated/work_queue.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace slipstream::simulated {
namespace {

/// The largest number of turns (yields) that the device lets pass before a piece of work. Before
/// one in kPausesOneIn pieces it also pauses for kPause, in which the host can get far ahead.
constexpr uint32_t kTurnsMax = 8;
constexpr uint32_t kPausesOneIn = 16;
constexpr auto kPause = std::chrono::microseconds(200);

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::stoull(value);
}

}  // namespace

WorkQueue& WorkQueue::Get() {
  static WorkQueue& queue = *new WorkQueue(Setting("SIMULATED_GPU_SEED", 1));
  return queue;
}

WorkQueue::WorkQueue(uint64_t seed) : random_(seed, 0) {
  std::fprintf(stderr, "simulated GPU: SIMULATED_GPU_SEED=%llu\n",
               static_cast<unsigned long long>(seed));
  pieces_left_ = Setting("SIMULATED_GPU_LOST_AFTER", UINT64_MAX);
  thread_ = std::thread([this] { Run(); });
}

WorkPtr WorkQueue::Add(Work work) {
  auto added = std::make_shared<Work>(std::move(work));
  MutexLock lock(mutex_);
  std::erase_if(added->after, [](const WorkPtr& one) { return one == nullptr || one->is_done; });
  waiting_.push_back(added);
  changed_.NotifyAll();
  return added;
}

void WorkQueue::Wake() {
  MutexLock lock(mutex_);
  changed_.NotifyAll();
}

bool WorkQueue::IsDone(const WorkPtr& work) {
  MutexLock lock(mutex_);
  return work == nullptr || work->is_done;
}

void WorkQueue::Await(const WorkPtr& work) {
  if (work == nullptr) return;
  MutexLock lock(mutex_);
  while (!work->is_done) changed_.Wait(mutex_);
}

void WorkQueue::AwaitAll() {
  std::vector<WorkPtr> all;
  {
    MutexLock lock(mutex_);
    all = waiting_;
    all.push_back(running_);
  }
  for (const WorkPtr& work : all) Await(work);
}

void WorkQueue::LoseAfter(uint64_t pieces, int device) {
  MutexLock lock(mutex_);
  pieces_left_ = pieces;
  losing_ = device;
  lost_.reset();
}

bool WorkQueue::IsLost(int device) {
  MutexLock lock(mutex_);
  return lost_ == device;
}

void WorkQueue::HoldGraphsAfter(uint64_t pieces) {
  MutexLock lock(mutex_);
  graph_pieces_max_ = pieces == UINT64_MAX ? UINT64_MAX : graph_pieces_ + pieces;
  changed_.NotifyAll();
}

uint64_t WorkQueue::graph_pieces() {
  MutexLock lock(mutex_);
  return graph_pieces_;
}

void WorkQueue::LetTimePass() {
  uint32_t turns = 0;
  bool pauses = false;
  {
    MutexLock lock(mutex_);
    while (waiting_.empty()) changed_.Wait(mutex_);
    turns = random_.Below(kTurnsMax + 1);
    pauses = random_.Below(kPausesOneIn) == 0;
  }
  for (uint32_t i = 0; i < turns; ++i) std::this_thread::yield();
  if (pauses) std::this_thread::sleep_for(kPause);
}

bool WorkQueue::IsReady(const Work& work) const {
  if (work.is_of_graph && graph_pieces_ == graph_pieces_max_) return false;
  const bool may_begin = lost_ == work.device || work.may_begin == nullptr || work.may_begin();
  return may_begin &&
         std::ranges::all_of(work.after, [](const WorkPtr& one) { return one->is_done; });
}

WorkPtr WorkQueue::TakeNext() {
  std::vector<size_t> ready;
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (IsReady(*waiting_[i])) ready.push_back(i);
  }
  if (ready.empty()) return nullptr;
  const size_t drawn = ready[random_.Below(static_cast<uint32_t>(ready.size()))];
  const auto chosen = waiting_.begin() + static_cast<ptrdiff_t>(drawn);
  WorkPtr work = std::move(*chosen);
  waiting_.erase(chosen);
  return work;
}

void WorkQueue::Run() {
  while (true) {
    LetTimePass();
    WorkPtr work;
    bool is_lost = false;
    {
      MutexLock lock(mutex_);
      if (pieces_left_ == 0) lost_ = losing_;
      while ((work = TakeNext()) == nullptr) changed_.Wait(mutex_);
      running_ = work;
      if (work->is_of_graph) ++graph_pieces_;
      is_lost = lost_ == work->device;
      if (pieces_left_ > 0 && pieces_left_ != UINT64_MAX) --pieces_left_;
    }
    if (!is_lost) work->run();
    work->run = nullptr;  // Releases the captured values, too.
    work->may_begin = nullptr;
    MutexLock lock(mutex_);
    work->is_done = true;
    work->after.clear();
    running_ = nullptr;
    changed_.NotifyAll();
  }
}

}  // namespace slipstream::simulated
