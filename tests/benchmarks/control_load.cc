#include "tests/benchmarks/control_load.h"

#include <grpcpp/grpcpp.h>

#include <map>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "tests/benchmarks/child_process.h"
#include "worker/core/heartbeat_times.h"

namespace slipstream::benchmarks {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(1);
constexpr uint64_t kBeatsPerAnswer = 10;
constexpr uint64_t kBeatsPerQuestion = 5;
constexpr int kRecentSteps = 2;

/// One stream of a worker. Writes the requests that it is given and keeps the newest reply.
template <typename Request, typename Reply>
class Stream final : public grpc::ClientBidiReactor<Request, Reply> {
 public:
  void Open(v1::Coordinator::Stub& stub,
            void (v1::Coordinator::Stub::async::*method)(
                grpc::ClientContext*, grpc::ClientBidiReactor<Request, Reply>*)) {
    (stub.async()->*method)(&context_, this);
    this->StartRead(&read_);
    this->StartCall();
  }

  void Close() {
    {
      MutexLock lock(mutex_);
      is_closing_ = true;
    }
    context_.TryCancel();
    MutexLock lock(mutex_);
    while (!is_done_) changed_.Wait(mutex_);
  }

  /// Returns false, and drops the request, if the previous one is still being written.
  bool Send(Request request) {
    {
      MutexLock lock(mutex_);
      if (is_writing_) return false;
      is_writing_ = true;
    }
    written_ = std::move(request);
    this->StartWrite(&written_);
    return true;
  }

  Reply newest() {
    MutexLock lock(mutex_);
    return newest_;
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    {
      MutexLock lock(mutex_);
      newest_ = read_;
    }
    this->StartRead(&read_);
  }
  void OnWriteDone(bool /*ok*/) override {
    MutexLock lock(mutex_);
    is_writing_ = false;
  }
  void OnDone(const grpc::Status& status) override {
    MutexLock lock(mutex_);
    Require(is_closing_, "a stream ended: " + status.error_message());
    is_done_ = true;
    changed_.NotifyAll();
  }

  grpc::ClientContext context_;
  Request written_;
  Reply read_;

  Mutex mutex_;
  CondVar changed_;
  Reply newest_ ABSL_GUARDED_BY(mutex_);
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_done_ ABSL_GUARDED_BY(mutex_) = false;
};

void AddFigures(uint64_t beats, v1::HeartbeatRequest& request) {
  request.set_examples(640 * beats);
  request.set_examples_per_second(640);
  request.set_train_loss(0.25);
  request.set_train_accuracy(0.9);
  request.set_compute_share(0.8);
  request.set_communication_share(0.3);
  request.set_communication_hidden(0.5);
  for (int i = 0; i < kRecentSteps; ++i) {
    v1::StepTimes& step = *request.add_recent_steps();
    step.set_step(beats);
    step.set_forward_begin(1e9);
    step.set_backward_end(1e9);
    step.add_lanes()->set_push_begin(1e9);
  }
}

}  // namespace

struct ControlLoad::Worker {
  v1::Identity identity;
  std::unique_ptr<v1::Coordinator::Stub> stub;
  Stream<v1::HeartbeatRequest, v1::HeartbeatReply> heartbeat;
  Stream<v1::GetWorkRequest, v1::GetWorkReply> work;
  uint64_t beats = 0;
  uint64_t done_of_unit = 0;
};

ControlLoad::ControlLoad(int port, const std::vector<v1::Identity>& identities) {
  for (const v1::Identity& identity : identities) {
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
    worker.identity = identity;
    worker.stub = ConnectAlone(port);
    worker.heartbeat.Open(*worker.stub, &v1::Coordinator::Stub::async::Heartbeat);
    worker.work.Open(*worker.stub, &v1::Coordinator::Stub::async::GetWork);
    worker.beats = identity.worker();  // Spreads the heartbeats that want an answer.
  }
}

ControlLoad::~ControlLoad() {
  for (const auto& worker : workers_) {
    worker->heartbeat.Close();
    worker->work.Close();
  }
}

uint64_t ControlLoad::SendUntil(absl::Time end) {
  sent_ = 0;
  std::multimap<absl::Time, Worker*> due;
  const absl::Time begin = absl::Now();
  for (const auto& worker : workers_) {
    due.emplace(NextHeartbeat(begin, kInterval, WorkerId{worker->identity.worker()}), worker.get());
  }
  while (!due.empty() && due.begin()->first < end) {
    const auto [time, worker] = *due.begin();
    due.erase(due.begin());
    absl::SleepFor(time - absl::Now());
    Beat(*worker);
    if (worker->beats % kBeatsPerQuestion == 0) AskForWork(*worker);
    due.emplace(time + kInterval, worker);
  }
  return sent_;
}

void ControlLoad::Beat(Worker& worker) {
  v1::HeartbeatRequest request;
  *request.mutable_identity() = worker.identity;
  AddFigures(++worker.beats, request);
  const v1::GetWorkReply unit = worker.work.newest();
  if (unit.unit() != 0) {
    v1::WorkProgress& progress = *request.add_progress();
    progress.set_unit(unit.unit());
    worker.done_of_unit = std::min(worker.done_of_unit + 1, unit.batches());
    progress.set_batches_done(worker.done_of_unit);
  }
  request.set_wants_answer(worker.beats % kBeatsPerAnswer == 0);
  if (worker.heartbeat.Send(std::move(request))) ++sent_;
}

void ControlLoad::AskForWork(Worker& worker) {
  v1::GetWorkRequest request;
  *request.mutable_identity() = worker.identity;
  request.set_newest_unit(worker.work.newest().unit());
  worker.done_of_unit = 0;
  if (worker.work.Send(std::move(request))) ++sent_;
}

std::unique_ptr<v1::Coordinator::Stub> ConnectAlone(int port) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::Coordinator::NewStub(grpc::CreateCustomChannel(
      "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments));
}

}  // namespace slipstream::benchmarks
