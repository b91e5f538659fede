#include "deploy/lab/virtual_calls.h"

#include <algorithm>
#include <utility>

#include "worker/core/push_verdict.h"

namespace slipstream {
namespace {

/// The bytes of a message beside its values, about.
constexpr uint64_t kHeaderBytes = 100;

/// When a call is made again that the shard could not take yet.
constexpr absl::Duration kPause = absl::Milliseconds(10);

}  // namespace

VirtualCalls::VirtualCalls(const LabContext& lab, VirtualProcess& process, WorkerId worker,
                           std::function<void(const absl::Status&)> on_failure)
    : lab_(lab),
      process_(process),
      worker_(worker),
      on_failure_(std::move(on_failure)),
      lanes_(lab.servers.size()) {}

VirtualCalls::~VirtualCalls() {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].call != CallId{}) lab_.servers[i]->Cancel(lanes_[i].call);
  }
}

void VirtualCalls::Pull(ShardId shard, std::function<PullRequest()> request, OnPulled on_pulled) {
  Begin(shard, [this, shard, request = std::move(request), on_pulled = std::move(on_pulled)] {
    Send(std::make_shared<PullCall>(PullCall{shard, request(), on_pulled}));
  });
}

void VirtualCalls::Push(ShardId shard, std::function<PushHeader()> header, Payload payload,
                        OnPushed on_pushed) {
  Begin(shard, [this, shard, header = std::move(header), payload = std::move(payload),
                on_pushed = std::move(on_pushed)] {
    const auto call = std::make_shared<PushCall>(PushCall{shard, header(), payload, on_pushed, {}});
    call->times.push_begin = process_.now();
    Send(call);
  });
}

void VirtualCalls::Begin(ShardId shard, std::function<void()> call) {
  Lane& lane = lanes_[Value(shard)];
  if (lane.is_busy) return lane.waiting.push_back(std::move(call));
  lane.is_busy = true;
  call();
}

void VirtualCalls::End(ShardId shard) {
  Lane& lane = lanes_[Value(shard)];
  lane.is_busy = !lane.waiting.empty();
  if (!lane.is_busy) return;
  const std::function<void()> next = std::move(lane.waiting.front());
  lane.waiting.pop_front();
  next();
}

void VirtualCalls::Send(const std::shared_ptr<PullCall>& call) {
  const absl::Time arrival =
      lab_.links.ToServer(worker_, call->shard, kHeaderBytes, process_.now());
  process_.At(arrival, [this, call] {
    CallId& at_shard = lanes_[Value(call->shard)].call;
    at_shard = ServerOf(call->shard).NewCall();
    ServerOf(call->shard).Pull(at_shard, call->request, process_.While([this, call](Answer answer) {
      OnAnswer(call, std::move(answer));
    }));
  });
}

void VirtualCalls::OnAnswer(const std::shared_ptr<PullCall>& call, Answer answer) {
  const CallId id = std::exchange(lanes_[Value(call->shard)].call, CallId{});
  if (absl::IsUnavailable(answer.refusal)) {  // The shard will know the worker, or the model, soon.
    return process_.At(process_.now() + kPause, [this, call] { Send(call); });
  }
  if (!answer.refusal.ok()) return on_failure_(answer.refusal);
  // The answer leaves also if the worker is gone by then.
  lab_.queue.At(process_.now(), [&server = ServerOf(call->shard), id, request = call->request] {
    server.FinishPull(id, request);
  });
  const absl::Time arrival = Arrival(call->shard, answer);
  process_.At(arrival, [this, call, answer = std::move(answer)] {
    call->on_pulled(call->request, answer);
    End(call->shard);
  });
}

void VirtualCalls::Send(const std::shared_ptr<PushCall>& call) {
  call->times.push_end =
      lab_.links.ToServer(worker_, call->shard, kHeaderBytes + call->payload.bytes, process_.now());
  process_.At(call->times.push_end, [this, call] {
    CallId& at_shard = lanes_[Value(call->shard)].call;
    at_shard = ServerOf(call->shard).NewCall();
    ServerOf(call->shard)
        .Push(at_shard, call->header, call->payload.values.get(), call->payload.bytes,
              process_.While([this, call](Answer answer) { OnAnswer(call, std::move(answer)); }));
  });
}

void VirtualCalls::OnAnswer(const std::shared_ptr<PushCall>& call, Answer answer) {
  lanes_[Value(call->shard)].call = CallId{};
  const absl::Time arrival = Arrival(call->shard, answer);
  if (Judge(answer.push->outcome) == PushVerdict::kSendAgain) {
    const absl::Duration pause = std::max(kPause, absl::Milliseconds(answer.push->retry_after_ms));
    return process_.At(arrival + pause, [this, call] { Send(call); });
  }
  process_.At(arrival, [this, call, answer = std::move(answer)] {
    call->times.answered = call->times.end = process_.now();
    call->times.busy = call->times.end - call->times.push_begin;
    call->on_pushed(call->header, answer, call->times);
    End(call->shard);
  });
}

absl::Time VirtualCalls::Arrival(ShardId shard, const Answer& answer) {
  uint64_t bytes = kHeaderBytes;
  if (answer.weights != nullptr) bytes += answer.weights->values().size() * sizeof(float);
  return lab_.links.ToWorker(shard, worker_, bytes, process_.now());
}

}  // namespace slipstream
