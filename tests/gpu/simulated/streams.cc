#include "tests/gpu/simulated/streams.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/mutex.h"
#include "tests/gpu/simulated/devices.h"
#include "tests/gpu/simulated/work_queue.h"

namespace slipstream::simulated {
namespace {

struct Node {
  std::function<void()> run;
  std::vector<size_t> after;
};

struct Graph {
  std::vector<Node> nodes;
  bool is_invalid = false;  // An operation that cannot be captured was made during capture.
  bool is_open = true;
};
using GraphPtr = std::shared_ptr<Graph>;

struct Stream {
  int device = current_device;
  std::vector<WorkPtr> last;  // The next piece of work comes after these.
  GraphPtr captured;          // Null unless the stream is captured.
  std::vector<size_t> heads;  // During capture: the next node comes after these.
  bool is_origin = false;     // Whether the capture began here.
};

struct Event {
  int device = current_device;
  std::vector<WorkPtr> work;
  GraphPtr captured;
  std::vector<size_t> heads;
};

/// Work that several streams do together, each time all of them have come. Used by the queue's
/// thread.
struct Meeting {
  std::function<void()> run;
  std::shared_ptr<const Abortion> abortion;
  std::vector<uint64_t> come;  // How often each stream has come.
  std::vector<uint64_t> gone;

  void Come(size_t who) {
    const uint64_t turn = ++come[who];
    if (std::ranges::all_of(come, [turn](uint64_t times) { return times == turn; })) run();
  }
  bool MayGo(size_t who) const {
    return abortion->is_aborted() || std::ranges::min(come) > gone[who];
  }
};

struct Executable {
  std::vector<Node> nodes;
  WorkPtr last;  // Executions of an executable do not overlap.
};

Mutex streams_mutex;
std::set<Stream*> streams ABSL_GUARDED_BY(streams_mutex);

Stream& Of(cudaStream_t stream) { return *reinterpret_cast<Stream*>(stream); }
Event& Of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }
Executable& Of(cudaGraphExec_t executable) { return *reinterpret_cast<Executable*>(executable); }
GraphPtr& Of(cudaGraph_t graph) { return *reinterpret_cast<GraphPtr*>(graph); }

cudaError_t LostOr(const Stream& stream) {
  return WorkQueue::Get().IsLost(stream.device) ? cudaErrorLaunchFailure : cudaSuccess;
}

void Unite(std::vector<size_t>& heads, const std::vector<size_t>& others) {
  for (const size_t head : others) {
    if (std::ranges::find(heads, head) == heads.end()) heads.push_back(head);
  }
}

/// Marks the capture as failed.
cudaError_t Invalidate(Stream& stream, cudaError_t error) {
  stream.captured->is_invalid = true;
  return error;
}

/// Returns whether every node is or comes before one of `heads`, the nodes reached by the origin.
bool IsJoined(const Graph& graph, const std::vector<size_t>& heads) {
  std::vector<bool> has_later(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    for (const size_t earlier : node.after) has_later[earlier] = true;
  }
  for (const size_t head : heads) has_later[head] = true;
  return std::ranges::all_of(has_later, [](bool has) { return has; });
}

void Add(Stream& stream, std::function<void()> run, std::function<bool()> may_begin = nullptr)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(streams_mutex) {
  stream.last = {
      WorkQueue::Get().Add({stream.device, std::move(run), stream.last, std::move(may_begin)})};
}

}  // namespace

void Abortion::Abort() {
  is_aborted_ = true;
  WorkQueue::Get().Wake();
}

cudaError_t Enqueue(cudaStream_t stream, std::function<void()> run) {
  MutexLock lock(streams_mutex);
  if (const cudaError_t lost = LostOr(Of(stream)); lost != cudaSuccess) return lost;
  Stream& here = Of(stream);
  if (here.device != current_device) return cudaErrorInvalidResourceHandle;
  if (here.captured != nullptr) {
    here.captured->nodes.push_back({std::move(run), here.heads});
    here.heads = {here.captured->nodes.size() - 1};
    return cudaSuccess;
  }
  Add(here, std::move(run));
  return cudaSuccess;
}

cudaError_t EnqueueTogether(const std::vector<cudaStream_t>& together, std::function<void()> run,
                            std::shared_ptr<const Abortion> abortion) {
  MutexLock lock(streams_mutex);
  for (cudaStream_t stream : together) {
    if (Of(stream).captured != nullptr) return cudaErrorStreamCaptureUnsupported;
  }
  const size_t size = together.size();
  const auto meeting =
      std::make_shared<Meeting>(Meeting{std::move(run), std::move(abortion),
                                        std::vector<uint64_t>(size), std::vector<uint64_t>(size)});
  for (size_t i = 0; i < size; ++i) {
    Add(Of(together[i]), [meeting, i] { meeting->Come(i); });
    Add(
        Of(together[i]), [meeting, i] { ++meeting->gone[i]; },
        [meeting, i] { return meeting->MayGo(i); });
  }
  return cudaSuccess;
}

int DeviceOf(cudaStream_t stream) {
  MutexLock lock(streams_mutex);
  return Of(stream).device;
}

bool IsCaptured(cudaStream_t stream) {
  MutexLock lock(streams_mutex);
  return Of(stream).captured != nullptr;
}

cudaError_t NewStream(cudaStream_t* stream) {
  MutexLock lock(streams_mutex);
  auto* made = new Stream;
  streams.insert(made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}

cudaError_t DeleteStream(cudaStream_t stream) {
  MutexLock lock(streams_mutex);
  streams.erase(&Of(stream));
  delete &Of(stream);
  return cudaSuccess;
}

cudaError_t Synchronize(cudaStream_t stream) {
  std::vector<WorkPtr> last;
  {
    MutexLock lock(streams_mutex);
    Stream& here = Of(stream);
    if (here.captured != nullptr) return Invalidate(here, cudaErrorStreamCaptureUnsupported);
    last = here.last;
  }
  for (const WorkPtr& work : last) WorkQueue::Get().Await(work);
  MutexLock lock(streams_mutex);
  return LostOr(Of(stream));
}

cudaError_t Query(cudaStream_t stream) {
  MutexLock lock(streams_mutex);
  Stream& here = Of(stream);
  if (const cudaError_t lost = LostOr(here); lost != cudaSuccess) return lost;
  if (here.captured != nullptr) return Invalidate(here, cudaErrorStreamCaptureUnsupported);
  const bool is_done = std::ranges::all_of(
      here.last, [](const WorkPtr& work) { return WorkQueue::Get().IsDone(work); });
  return is_done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t NewEvent(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}

cudaError_t DeleteEvent(cudaEvent_t event) {
  delete &Of(event);
  return cudaSuccess;
}

cudaError_t Record(cudaEvent_t event, cudaStream_t stream) {
  MutexLock lock(streams_mutex);
  const Stream& here = Of(stream);
  if (const cudaError_t lost = LostOr(here); lost != cudaSuccess) return lost;
  Event& recorded = Of(event);
  if (recorded.device != here.device) return cudaErrorInvalidResourceHandle;
  recorded.work = here.captured == nullptr ? here.last : std::vector<WorkPtr>();
  recorded.captured = here.captured;
  recorded.heads = here.heads;
  return cudaSuccess;
}

cudaError_t Wait(cudaStream_t stream, cudaEvent_t event) {
  MutexLock lock(streams_mutex);
  Stream& here = Of(stream);
  if (const cudaError_t lost = LostOr(here); lost != cudaSuccess) return lost;
  const Event& awaited = Of(event);
  if (awaited.captured == nullptr) {
    if (here.captured != nullptr) return Invalidate(here, cudaErrorStreamCaptureIsolation);
    here.last.insert(here.last.end(), awaited.work.begin(), awaited.work.end());
    return cudaSuccess;
  }
  if (!awaited.captured->is_open) return cudaErrorCapturedEvent;
  if (here.captured != nullptr && here.captured != awaited.captured) {
    return Invalidate(here, cudaErrorStreamCaptureMerge);
  }
  here.captured = awaited.captured;
  Unite(here.heads, awaited.heads);
  return cudaSuccess;
}

cudaError_t BeginCapture(cudaStream_t stream) {
  MutexLock lock(streams_mutex);
  Stream& here = Of(stream);
  if (here.captured != nullptr) return cudaErrorIllegalState;
  here.captured = std::make_shared<Graph>();
  here.heads.clear();
  here.is_origin = true;
  return cudaSuccess;
}

cudaError_t EndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  MutexLock lock(streams_mutex);
  Stream& here = Of(stream);
  if (here.captured == nullptr) return cudaErrorIllegalState;
  if (!here.is_origin) return Invalidate(here, cudaErrorStreamCaptureUnmatched);
  const GraphPtr captured = here.captured;
  const bool is_joined = IsJoined(*captured, here.heads);
  captured->is_open = false;
  for (Stream* other : streams) {
    if (other->captured != captured) continue;
    other->captured = nullptr;
    other->heads.clear();
    other->is_origin = false;
  }
  if (captured->is_invalid) return cudaErrorStreamCaptureInvalidated;
  if (!is_joined) return cudaErrorStreamCaptureUnjoined;
  *graph = reinterpret_cast<cudaGraph_t>(new GraphPtr(captured));
  return cudaSuccess;
}

cudaError_t DeleteGraph(cudaGraph_t graph) {
  delete &Of(graph);
  return cudaSuccess;
}

cudaError_t Instantiate(cudaGraphExec_t* executable, cudaGraph_t graph) {
  *executable = reinterpret_cast<cudaGraphExec_t>(new Executable{Of(graph)->nodes, nullptr});
  return cudaSuccess;
}

cudaError_t DeleteExecutable(cudaGraphExec_t executable) {
  delete &Of(executable);
  return cudaSuccess;
}

cudaError_t Launch(cudaGraphExec_t executable, cudaStream_t stream) {
  MutexLock lock(streams_mutex);
  Stream& here = Of(stream);
  if (const cudaError_t lost = LostOr(here); lost != cudaSuccess) return lost;
  Executable& graph = Of(executable);
  if (here.captured != nullptr) return Invalidate(here, cudaErrorStreamCaptureUnsupported);
  if (here.device != current_device) return cudaErrorInvalidResourceHandle;
  std::vector<WorkPtr> before = here.last;
  before.push_back(graph.last);
  std::vector<WorkPtr> nodes;
  const auto add = [&](std::function<void()> run, std::vector<WorkPtr> after) {
    return WorkQueue::Get().Add({.device = here.device,
                                 .run = std::move(run),
                                 .after = std::move(after),
                                 .is_of_graph = true});
  };
  for (const Node& node : graph.nodes) {
    std::vector<WorkPtr> after = node.after.empty() ? before : std::vector<WorkPtr>();
    for (const size_t earlier : node.after) after.push_back(nodes[earlier]);
    nodes.push_back(add(node.run, std::move(after)));
  }
  nodes.insert(nodes.end(), before.begin(), before.end());
  graph.last = add([] {}, std::move(nodes));
  here.last = {graph.last};
  return cudaSuccess;
}

}  // namespace slipstream::simulated
