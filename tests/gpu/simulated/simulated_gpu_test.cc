#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/gpu/simulated/devices.h"
#include "tests/gpu/simulated/kernel_threads.h"
#include "tests/gpu/simulated/memory.h"
#include "tests/gpu/simulated/streams.h"
#include "tests/gpu/simulated/work_queue.h"

namespace slipstream::simulated {
namespace {

class StreamTest : public testing::Test {
 protected:
  void SetUp() override {
    for (cudaStream_t* stream : {&one_, &other_}) ASSERT_EQ(NewStream(stream), cudaSuccess);
    ASSERT_EQ(NewEvent(&event_), cudaSuccess);
  }

  void TearDown() override {
    WorkQueue::Get().AwaitAll();
    for (cudaStream_t stream : {one_, other_}) EXPECT_EQ(DeleteStream(stream), cudaSuccess);
    EXPECT_EQ(DeleteEvent(event_), cudaSuccess);
  }

  /// Records `name` when the device runs this piece of work.
  void Note(cudaStream_t stream, char name) {
    ASSERT_EQ(Enqueue(stream, [this, name] { notes_ += name; }), cudaSuccess);
  }

  std::string TakeNotes() {
    WorkQueue::Get().AwaitAll();
    return std::exchange(notes_, {});
  }

  cudaStream_t one_ = nullptr;
  cudaStream_t other_ = nullptr;
  cudaEvent_t event_ = nullptr;

 private:
  std::string notes_;  // Used by the device's thread while it has work.
};

TEST_F(StreamTest, AStreamKeepsItsOrderAndTwoHaveNone) {
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) {
    Note(one_, 'a');
    Note(one_, 'b');
    Note(other_, 'x');
    seen.insert(TakeNotes());
  }
  EXPECT_EQ(seen, (std::set<std::string>{"abx", "axb", "xab"}));
}

TEST_F(StreamTest, AnEventOrdersWhatCameBeforeItAndWhatComesAfter) {
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) {
    Note(one_, 'a');
    ASSERT_EQ(Record(event_, one_), cudaSuccess);
    Note(one_, 'b');
    ASSERT_EQ(Wait(other_, event_), cudaSuccess);
    Note(other_, 'x');
    seen.insert(TakeNotes());
  }
  EXPECT_EQ(seen, (std::set<std::string>{"abx", "axb"}));
}

TEST_F(StreamTest, AGraphTakesInWhoWaitsForIt) {
  ASSERT_EQ(BeginCapture(one_), cudaSuccess);
  Note(one_, 'a');
  ASSERT_EQ(Record(event_, one_), cudaSuccess);
  ASSERT_EQ(Wait(other_, event_), cudaSuccess);
  Note(other_, 'x');
  Note(one_, 'b');
  ASSERT_EQ(Record(event_, other_), cudaSuccess);
  ASSERT_EQ(Wait(one_, event_), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(EndCapture(one_, &graph), cudaSuccess);
  EXPECT_EQ(TakeNotes(), "") << "nothing is done yet";
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(Instantiate(&executable, graph), cudaSuccess);
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(Launch(executable, one_), cudaSuccess);
    Note(one_, 'c');
    seen.insert(TakeNotes());
  }
  EXPECT_EQ(seen, (std::set<std::string>{"abxc", "axbc"}));
  EXPECT_EQ(DeleteExecutable(executable), cudaSuccess);
  EXPECT_EQ(DeleteGraph(graph), cudaSuccess);
}

TEST_F(StreamTest, WhatCannotBeCapturedSpoilsTheGraph) {
  cudaGraph_t graph = nullptr;
  Note(other_, 'x');
  ASSERT_EQ(Record(event_, other_), cudaSuccess);
  ASSERT_EQ(BeginCapture(one_), cudaSuccess);
  EXPECT_EQ(Wait(one_, event_), cudaErrorStreamCaptureIsolation) << "for work outside of it";
  EXPECT_EQ(EndCapture(one_, &graph), cudaErrorStreamCaptureInvalidated);

  ASSERT_EQ(BeginCapture(one_), cudaSuccess);
  EXPECT_EQ(Synchronize(one_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(EndCapture(one_, &graph), cudaErrorStreamCaptureInvalidated);

  ASSERT_EQ(BeginCapture(one_), cudaSuccess);
  ASSERT_EQ(Record(event_, one_), cudaSuccess);
  ASSERT_EQ(Wait(other_, event_), cudaSuccess);
  Note(other_, 'x');
  EXPECT_EQ(EndCapture(one_, &graph), cudaErrorStreamCaptureUnjoined) << "nobody waits for x";
  Note(other_, 'y');
  EXPECT_EQ(TakeNotes(), "xy") << "the stream is itself again";
}

/// Three streams, each on its own device.
class MeetingTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int device = 0; device < kDevices; ++device) {
      current_device = device;
      ASSERT_EQ(NewStream(&streams_.emplace_back()), cudaSuccess);
    }
  }

  void TearDown() override {
    WorkQueue::Get().AwaitAll();
    for (cudaStream_t stream : streams_) EXPECT_EQ(DeleteStream(stream), cudaSuccess);
    current_device = 0;
  }

  void Note(int device, char name) {
    current_device = device;
    ASSERT_EQ(Enqueue(streams_[static_cast<size_t>(device)], [this, name] { notes_ += name; }),
              cudaSuccess);
  }

  /// Records a, b and c before the meeting, m at it, and x, y and z after it.
  void NoteAll() {
    for (int device = 0; device < kDevices; ++device) Note(device, static_cast<char>('a' + device));
    ASSERT_EQ(EnqueueTogether(
                  streams_, [this] { notes_ += 'm'; }, abortion_),
              cudaSuccess);
    for (int device = 0; device < kDevices; ++device) Note(device, static_cast<char>('x' + device));
  }

  void ExpectMet(const std::string& notes) {
    ASSERT_EQ(notes.size(), 7u) << notes;
    EXPECT_EQ(notes[3], 'm') << notes;
    EXPECT_EQ(notes.find_first_of("xyz"), 4u) << notes;
  }

  std::vector<cudaStream_t> streams_;
  const std::shared_ptr<Abortion> abortion_ = std::make_shared<Abortion>();
  std::string notes_;
};

TEST_F(MeetingTest, NobodyGoesOnBeforeAllHaveComeAndTheWorkIsDone) {
  for (int i = 0; i < 50; ++i) {
    NoteAll();
    WorkQueue::Get().AwaitAll();
    ExpectMet(std::exchange(notes_, {}));
  }
}

TEST_F(MeetingTest, CannotBeCaptured) {
  ASSERT_EQ(BeginCapture(streams_[1]), cudaSuccess);
  EXPECT_EQ(EnqueueTogether(
                streams_, [] {}, abortion_),
            cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(EndCapture(streams_[1], &graph), cudaSuccess);
  EXPECT_EQ(DeleteGraph(graph), cudaSuccess);
}

TEST_F(MeetingTest, WhoseOtherIsLostIsWaitedForInVainUntilItIsAborted) {
  WorkQueue::Get().LoseAfter(0, 1);
  Note(0, 'a');
  Note(2, 'c');
  ASSERT_EQ(EnqueueTogether(
                streams_, [this] { notes_ += 'm'; }, abortion_),
            cudaSuccess);
  EXPECT_EQ(Synchronize(streams_[1]), cudaErrorLaunchFailure);
  EXPECT_EQ(Query(streams_[0]), cudaErrorNotReady);
  abortion_->Abort();
  EXPECT_EQ(Synchronize(streams_[0]), cudaSuccess);
  EXPECT_EQ(Synchronize(streams_[2]), cudaSuccess);
  EXPECT_EQ(notes_.find('m'), std::string::npos) << notes_;
  WorkQueue::Get().LoseAfter(UINT64_MAX);
}

TEST_F(MeetingTest, WhatIsOfAnotherDeviceIsRefused) {
  current_device = 1;
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  EXPECT_TRUE(IsOnDevice(memory, 16));
  float value = 0;
  current_device = 0;
  EXPECT_FALSE(IsOnDevice(memory, 16));
  EXPECT_EQ(cudaMemcpyAsync(memory, &value, 4, cudaMemcpyHostToDevice, streams_[0]),
            cudaErrorInvalidValue);
  EXPECT_EQ(Enqueue(streams_[1], [] {}), cudaErrorInvalidResourceHandle);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(NewEvent(&event), cudaSuccess);
  EXPECT_EQ(Record(event, streams_[1]), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(DeleteEvent(event), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(StreamTest, ALostDeviceSaysSoAndNobodyWaitsForIt) {
  WorkQueue::Get().LoseAfter(1);
  Note(one_, 'a');
  EXPECT_EQ(Enqueue(one_, [] {}), cudaSuccess);
  EXPECT_EQ(Synchronize(one_), cudaErrorLaunchFailure);
  EXPECT_EQ(Enqueue(one_, [] {}), cudaErrorLaunchFailure);
  EXPECT_EQ(Query(one_), cudaErrorLaunchFailure);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 1), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure) << "it stays";
  WorkQueue::Get().LoseAfter(UINT64_MAX);
  EXPECT_EQ(TakeNotes(), "a");
}

TEST(MemoryTest, CopiesStayWithinAllocations) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 1024), cudaSuccess);
  float unset = 0;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const auto copy = [&](void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, stream);
  };

  EXPECT_EQ(copy(&unset, memory, sizeof(unset), cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_TRUE(std::isnan(unset));
  std::vector<std::byte> host(2048);
  EXPECT_EQ(copy(host.data(), memory, 1025, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "it is told once";
  EXPECT_EQ(copy(memory, host.data(), 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(copy(static_cast<std::byte*>(memory) + 1020, host.data(), 16, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(host.data()), cudaErrorInvalidValue);
  void* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, 100, cudaHostAllocPortable), cudaSuccess);
  EXPECT_EQ(copy(memory, pinned, 101, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(copy(pinned, memory, 101, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(copy(pinned, memory, 100, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);

  EXPECT_EQ(cudaHostRegister(host.data(), 64, cudaHostRegisterPortable), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(host.data() + 63, 64, cudaHostRegisterPortable),
            cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(copy(host.data(), memory, 65, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(copy(host.data(), memory, 64, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(host.data()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(KernelThreadsTest, EveryThreadOfEveryBlockRunsOnce) {
  const dim3 blocks = {3, 2, 1};
  const dim3 threads = {5, 4, 2};
  std::set<std::vector<unsigned>> seen;
  size_t calls = 0;
  RunGrid(blocks, threads, [&] {
    const auto& [grid, block, at, thread] = Here();
    EXPECT_EQ(grid.x, 3u);
    EXPECT_EQ(block.y, 4u);
    seen.insert({at.x, at.y, at.z, thread.x, thread.y, thread.z});
    ++calls;
  });
  EXPECT_EQ(calls, 240u);
  EXPECT_EQ(seen.size(), 240u);
}

TEST(KernelThreadsTest, ABarrierWaitsForAllOfTheBlockButThoseThatEnded) {
  int before = 0;
  RunGrid({2}, {100}, [&] {
    if (Here().thread_index.x == 17) return;
    ++before;
    AwaitBlock();
    EXPECT_EQ(before % 99, 0) << "somebody has not come yet";
    AwaitBlock();
  });
  EXPECT_EQ(before, 198);
}

TEST(KernelThreadsTest, AWarpExchangesValues) {
  RunGrid({2}, {96}, [] {
    const unsigned thread = Here().thread_index.x;
    unsigned sum = thread;
    for (unsigned distance = 16; distance > 0; distance /= 2) sum += ShuffleXor(sum, distance);
    const unsigned first = thread / 32 * 32;
    EXPECT_EQ(sum, 32 * first + 31 * 16);
    EXPECT_EQ(ShuffleXor(double{0.5} * thread, 3), 0.5 * (thread ^ 3u));
  });
}

TEST(KernelThreadsDeathTest, AThreadThatNeverComesToABarrierIsAMistake) {
  EXPECT_DEATH(RunGrid({1}, {64},
                       [] {
                         if (Here().thread_index.x < 16) ShuffleXor(1, 1);
                         AwaitBlock();
                       }),
               "");
}

TEST(KernelThreadsDeathTest, ALaneThatHasEndedGivesNothing) {
  EXPECT_DEATH(RunGrid({1}, {32},
                       [] {
                         if (Here().thread_index.x < 16) ShuffleXor(1, 16);
                       }),
               "");
}

}  // namespace
}  // namespace slipstream::simulated
