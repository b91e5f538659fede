#include "tests/simulation/network.h"

#include <grpcpp/support/slice.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace slipstream {
namespace {

constexpr absl::Duration kDelayMin = absl::Microseconds(20);

/// Returns the same bytes as the receiver gets them: in other buffers, cut anywhere.
grpc::ByteBuffer Received(const grpc::ByteBuffer& sent, Chance& chance) {
  std::vector<grpc::Slice> slices;
  PS_CHECK(sent.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  const size_t cut = chance.Between(0, static_cast<uint32_t>(bytes.size()));
  const grpc::Slice parts[] = {grpc::Slice(bytes.data(), cut),
                               grpc::Slice(bytes.data() + cut, bytes.size() - cut)};
  return {parts, 2};
}

}  // namespace

struct Network::PendingCall {
  std::shared_ptr<Process> client;
  std::function<void(absl::StatusOr<std::string>)> done;
  bool is_over = false;
  bool loses_answer = false;

  void End(absl::StatusOr<std::string> result) {
    if (std::exchange(is_over, true)) return;
    std::exchange(done, nullptr)(std::move(result));
  }
};

Network::Network(const Scenario& scenario, EventQueue& queue, uint64_t stream)
    : faults_(scenario.faults),
      delay_max_(scenario.delay_max),
      queue_(queue),
      chance_(scenario.seed, stream) {}

void Network::Connect(ShardEnds& shards, CoordinatorEnd coordinator) {
  shards_ = &shards;
  coordinator_ = std::move(coordinator);
}

void Network::AtProcess(const std::shared_ptr<Process>& process, absl::Time time,
                        std::function<void()> call) {
  queue_.At(time, [this, process, call = std::move(call)] {
    if (process->is_dead) return;
    if (queue_.now() < process->frozen_until) {
      AtProcess(process, process->frozen_until, call);
    } else {
      call();
    }
  });
}

absl::Duration Network::Delay() { return chance_.Time(kDelayMin, std::max(kDelayMin, delay_max_)); }

StreamPtr Network::Open(StreamKind kind, ShardId shard, const std::shared_ptr<Process>& client,
                        std::optional<uint32_t> group) {
  StreamPtr stream = std::make_shared<Stream>();
  stream->number = next_stream_++;
  stream->kind = kind;
  stream->shard = shard;
  stream->group = group;
  stream->client = client;
  open_.emplace(stream->number, stream);
  return stream;
}

void Network::SendUp(const StreamPtr& stream, std::vector<grpc::ByteBuffer> messages) {
  if (IsFaulty() && chance_.Happens(faults_.duplicate_per_mille)) SendTwice(stream, messages);
  if (IsLost()) {
    // A part of it arrives, perhaps everything. Then both sides notice the failure, each at its own
    // time.
    const auto count = chance_.Between(0, static_cast<uint32_t>(messages.size()));
    Carry(stream, messages, count);
    Break(stream);
    return;
  }
  Carry(stream, messages, messages.size());
}

void Network::Carry(const StreamPtr& stream, const std::vector<grpc::ByteBuffer>& messages,
                    size_t count) {
  for (size_t i = 0; i < count; ++i) {
    stream->up_last = std::max(stream->up_last, queue_.now() + Delay());
    queue_.At(stream->up_last, [this, stream, message = Received(messages[i], chance_)] {
      if (!stream->server_is_gone) shards_->OnMessage(stream, message);
    });
  }
}

void Network::SendTwice(const StreamPtr& stream, const std::vector<grpc::ByteBuffer>& messages) {
  // The repetition is like a try that its client gave up: nobody reads the answer.
  const StreamPtr again = Open(stream->kind, stream->shard, stream->client, stream->group);
  again->client_is_gone = true;
  again->up_last = queue_.now() + chance_.Time(absl::ZeroDuration(), faults_.late_max);
  Carry(again, messages, messages.size());
  CancelAtServer(again);
}

void Network::Break(const StreamPtr& stream) {
  const absl::Duration after = chance_.Time(absl::ZeroDuration(), faults_.failure_max);
  AtProcess(stream->client, queue_.now() + after, [stream] {
    if (std::exchange(stream->client_is_gone, true)) return;
    stream->on_end(absl::UnavailableError("the connection broke"));
  });
  CancelAtServer(stream);
}

void Network::CancelAtServer(const StreamPtr& stream) {
  const absl::Duration after = chance_.Time(absl::ZeroDuration(), faults_.cancel_max);
  stream->up_last = std::max(stream->up_last, queue_.now() + after);
  queue_.At(stream->up_last, [this, stream] {
    open_.erase(stream->number);
    if (!std::exchange(stream->server_is_gone, true)) shards_->OnCancel(stream);
  });
}

void Network::Drop(const StreamPtr& stream) {
  if (std::exchange(stream->client_is_gone, true)) return;
  CancelAtServer(stream);
}

void Network::DropAllOf(const std::shared_ptr<Process>& client) {
  std::vector<StreamPtr> streams;
  for (const auto& [number, weak] : open_) {
    const StreamPtr stream = weak.lock();
    if (stream != nullptr && stream->client == client) streams.push_back(stream);
  }
  for (const StreamPtr& stream : streams) Drop(stream);
}

void Network::SendDown(const StreamPtr& stream, std::vector<grpc::ByteBuffer> messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    if (IsLost() && !stream->client_is_gone) return Break(stream);
    stream->down_last = std::max(stream->down_last, queue_.now() + Delay());
    const bool is_last = i + 1 == messages.size();
    const auto take = [this, stream, is_last, message = Received(messages[i], chance_)] {
      if (!stream->client_is_gone) stream->on_message(message);
      if (is_last && !stream->server_is_gone) shards_->OnSent(stream);
    };
    AtProcess(stream->client, stream->down_last, take);
  }
}

void Network::Finish(const StreamPtr& stream, const absl::Status& status) {
  stream->server_is_gone = true;
  open_.erase(stream->number);
  stream->down_last = std::max(stream->down_last, queue_.now() + Delay());
  AtProcess(stream->client, stream->down_last, [stream, status] {
    if (std::exchange(stream->client_is_gone, true)) return;
    stream->on_end(status);
  });
}

void Network::Call(Method method, std::string request, const std::shared_ptr<Process>& client,
                   std::function<void(absl::StatusOr<std::string>)> done) {
  const auto call = std::make_shared<PendingCall>();
  call->client = client;
  call->done = std::move(done);
  const bool loses_request = IsLost();
  call->loses_answer = IsLost();
  if (!loses_request) {
    queue_.At(queue_.now() + Delay(),
              [this, method, request, call] { Deliver(method, request, call); });
  }
  if (IsFaulty() && chance_.Happens(faults_.duplicate_per_mille)) {
    const absl::Duration late = chance_.Time(absl::ZeroDuration(), faults_.late_max);
    ++late_calls_;
    queue_.At(queue_.now() + Delay() + late, [this, method, request] {
      --late_calls_;
      coordinator_(method, request, [](const absl::Status&, const std::string&) {});
    });
  }
  if (loses_request || call->loses_answer) {
    const absl::Duration after = chance_.Time(absl::ZeroDuration(), faults_.failure_max);
    AtProcess(client, queue_.now() + after,
              [call] { call->End(absl::UnavailableError("the connection broke")); });
  }
}

void Network::Deliver(Method method, const std::string& request,
                      const std::shared_ptr<PendingCall>& call) {
  coordinator_(method, request, [this, call](absl::Status status, std::string reply) {
    if (call->loses_answer) return;
    AtProcess(call->client, queue_.now() + Delay(),
              [call, status = std::move(status), reply = std::move(reply)] {
                if (status.ok()) {
                  call->End(reply);
                } else {
                  call->End(status);
                }
              });
  });
}

}  // namespace slipstream
