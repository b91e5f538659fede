#include "deploy/lab/virtual_calls.h"

#include <algorithm>
#include <utility>

#include "common/kernels/copy_values.h"
#include "worker/core/push_verdict.h"

namespace slipstream {
namespace {

/// The bytes of a message beside its values, about.
constexpr uint64_t kHeaderBytes = 100;

/// When a call is made again that the shard could not take yet.
constexpr absl::Duration kPause = absl::Milliseconds(10);

ReceivedValues CopyOf(const ReceivedValues& values) {
  ReceivedValues::Buffer copy = ReceivedValues::MakeBuffer(values.count());
  CopyValues(values.segments(), copy.to);
  return std::move(copy.values);
}

}  // namespace

VirtualCalls::VirtualCalls(const LabContext& lab, VirtualProcess& process, VirtualRoute shards,
                           std::optional<VirtualRoute> aggregators,
                           std::function<void(const absl::Status&)> on_failure)
    : lab_(lab),
      process_(process),
      shards_(std::move(shards)),
      aggregators_(std::move(aggregators)),
      on_failure_(std::move(on_failure)),
      lanes_(lab.servers.size()) {}

VirtualCalls::~VirtualCalls() {
  for (uint32_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].peer != nullptr) lanes_[i].peer->Cancel(lanes_[i].call);
    if (lanes_[i].stream != CallId{}) aggregators_->peer(ShardId{i}).Cancel(lanes_[i].stream);
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

const VirtualRoute& VirtualCalls::Way(ShardId shard, bool may_be_aggregator) const {
  const bool is_there = may_be_aggregator && aggregators_.has_value();
  return is_there && lanes_[Value(shard)].aggregator.IsUsable(process_.now()) ? *aggregators_
                                                                              : shards_;
}

absl::Time VirtualCalls::Arrival(const VirtualRoute& way, ShardId shard,
                                 const Answer& answer) const {
  uint64_t bytes = kHeaderBytes;
  if (answer.weights != nullptr) bytes += answer.weights->values().size() * sizeof(float);
  return way.from(shard, bytes, process_.now());
}

void VirtualCalls::Send(const std::shared_ptr<PullCall>& call) {
  const VirtualRoute& way = Way(call->shard, !call->request.trains && !call->is_for_shard);
  process_.At(way.to(call->shard, kHeaderBytes, process_.now()), [this, call, &way] {
    Lane& lane = lanes_[Value(call->shard)];
    lane.peer = &way.peer(call->shard);
    lane.call = lane.peer->NewCall();
    lane.peer->Pull(lane.call, call->request, process_.While([this, call, &way](Answer answer) {
      OnAnswer(call, way, std::move(answer));
    }));
  });
}

void VirtualCalls::OnAnswer(const std::shared_ptr<PullCall>& call, const VirtualRoute& way,
                            Answer answer) {
  Lane& lane = lanes_[Value(call->shard)];
  VirtualPeer& peer = *std::exchange(lane.peer, nullptr);
  const CallId id = std::exchange(lane.call, CallId{});
  if (!answer.refusal.ok() && &way != &shards_) {
    call->is_for_shard = true;
    lane.aggregator.OnFailure(process_.now());
    return Send(call);
  }
  if (absl::IsUnavailable(answer.refusal)) {  // The shard will know the worker, or the model, soon.
    return process_.At(process_.now() + kPause, [this, call] { Send(call); });
  }
  if (!answer.refusal.ok()) return on_failure_(answer.refusal);
  // The answer leaves also if the caller is gone by then.
  lab_.queue.At(process_.now(),
                [&peer, id, request = call->request] { peer.FinishPull(id, request); });
  const absl::Time arrival = Arrival(way, call->shard, answer);
  process_.At(arrival, [this, call, answer = std::move(answer)] {
    call->on_pulled(call->request, answer);
    End(call->shard);
  });
}

void VirtualCalls::Send(const std::shared_ptr<PushCall>& call) {
  ReceivedValues* const values = call->payload.values.get();
  const VirtualRoute& way = Way(call->shard, values != nullptr && !call->is_for_shard);
  call->times.push_end = way.to(call->shard, kHeaderBytes + call->payload.bytes, process_.now());
  process_.At(call->times.push_end, [this, call, values, &way] {
    Lane& lane = lanes_[Value(call->shard)];
    VirtualPeer& peer = way.peer(call->shard);
    auto on_answer = process_.While(
        [this, call, &way](Answer answer) { OnAnswer(call, way, std::move(answer)); });
    if (&way != &shards_) {
      if (lane.stream == CallId{}) lane.stream = peer.NewCall();
      // The shard may have to be sent them, too.
      ReceivedValues copy = CopyOf(*values);
      return peer.Push(lane.stream, call->header, &copy, call->payload.bytes, on_answer);
    }
    lane.peer = &peer;
    lane.call = peer.NewCall();
    peer.Push(lane.call, call->header, values, call->payload.bytes, on_answer);
  });
}

void VirtualCalls::OnAnswer(const std::shared_ptr<PushCall>& call, const VirtualRoute& way,
                            Answer answer) {
  Lane& lane = lanes_[Value(call->shard)];
  const absl::Time arrival = Arrival(way, call->shard, answer);
  const PushOutcome outcome = answer.push->outcome;
  if (&way != &shards_ && IsRefusal(outcome)) {
    call->is_for_shard = true;
    return process_.At(arrival, [this, call, &lane, outcome] {
      if (lane.aggregator.OnRefusal(outcome)) {
        lane.aggregator.OnFailure(process_.now());
        aggregators_->peer(call->shard).Cancel(std::exchange(lane.stream, CallId{}));
      }
      Send(call);
    });
  }
  if (&way != &shards_) {
    lane.aggregator.OnAnswer();
  } else {
    lane.peer = nullptr;
    lane.call = CallId{};
  }
  if (outcome != PushOutcome::kNotCombined && Judge(outcome) == PushVerdict::kSendAgain) {
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

}  // namespace slipstream
