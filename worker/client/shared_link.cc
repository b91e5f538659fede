#include "worker/client/shared_link.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/local/local_socket.h"
#include "common/local/shared_values.h"
#include "common/process/steady_time.h"
#include "common/wire/chunk_wire.h"
#include "common/wire/message_notes.h"

namespace slipstream {
namespace {

// The number of chunks that the shard may be told of and not have read yet. It is large enough that
// the shard does not wait for the next chunk, and small enough that this end keeps pace and stays
// awake: with 8, an exchange of 4 MiB took 1.2 times as long.
constexpr uint64_t kUnreadMax = 3;

// How often a wait checks whether it was cancelled.
constexpr absl::Duration kLook = absl::Milliseconds(100);

absl::Status None(absl::string_view why) { return absl::FailedPreconditionError(why); }

absl::StatusOr<SharedMemoryReply> Ask(RawCall& stream, const SharedMemoryRequest& request,
                                      absl::Time deadline) {
  grpc::ByteBuffer message;
  if (!stream.Write(EncodeRequest(request), RawCall::Next::kReads, deadline) ||
      !stream.Read(message, deadline)) {
    return absl::UnavailableError("ended the call early");
  }
  absl::StatusOr<ExchangeChunk> chunk = DecodeExchangeChunk(message);
  if (!chunk.ok() || !chunk->reply.has_value()) {
    return absl::InternalError("answer: none to a question about shared memory");
  }
  return *std::move(chunk->reply);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedLink>> SharedLink::Attach(RawCall& stream,
                                                               const SharedArena& arena,
                                                               absl::Time deadline,
                                                               CancelSwitch& cancel) {
  const absl::StatusOr<SharedMemoryReply> opened =
      Ask(stream, {.step = SharedMemoryRequest::Step::kOpen}, deadline);
  if (!opened.ok()) return opened.status();
  if (!opened->refusal.empty()) return None(opened->refusal);
  absl::StatusOr<FileDescriptor> socket =
      ConnectLocally(opened->socket, LocalSocketKind::kMessages);
  if (!socket.ok()) return None(socket.status().message());
  if (const absl::Status user = CheckSameUser(*socket); !user.ok()) return None(user.message());
  const absl::Status shown = SendNote(*socket, {LocalNote::Kind::kArena, 0}, &arena.file());
  if (!shown.ok()) return None(shown.message());
  const absl::StatusOr<SharedMemoryReply> attached =
      Ask(stream, {.step = SharedMemoryRequest::Step::kAttach}, deadline);
  if (!attached.ok()) return attached.status();
  if (!attached->refusal.empty()) return None(attached->refusal);
  std::unique_ptr<SharedLink> link(new SharedLink(stream, arena, *std::move(socket), cancel));
  stream.ReadAhead();
  return link;
}

absl::Status SharedLink::Send(const grpc::ByteBuffer& message) {
  return SendMessage(socket_, message);
}

absl::StatusOr<std::optional<grpc::ByteBuffer>> SharedLink::Receive(absl::Time deadline) {
  answer_wait_.Begin();
  for (;;) {
    absl::StatusOr<ReceivedNote> note = NextNote(deadline, answer_wait_.awake_until());
    if (!note.ok()) return note.status();
    const LocalNote::Kind kind = note->note.kind;
    if (kind == LocalNote::Kind::kMessage || kind == LocalNote::Kind::kOnStream) {
      answer_wait_.End();
      if (kind == LocalNote::Kind::kOnStream) return std::nullopt;
      return MessageOf(*note);
    }
    if (absl::Status heeded = Heed(*std::move(note)); !heeded.ok()) return heeded;
  }
}

absl::StatusOr<SharedValues> SharedLink::Place(std::span<const float> values, absl::Time deadline) {
  if (placed_ - taken_ >= kUnreadMax) {
    place_wait_.Begin();
    while (placed_ - taken_ >= kUnreadMax) {
      absl::Status note = TakeNote(deadline, place_wait_.awake_until());
      if (!note.ok()) return note;
    }
    place_wait_.End();
  }
  ++placed_;
  return SharedValues{arena_.Position(values), values.size()};
}

absl::StatusOr<std::span<const float>> SharedLink::Find(const SharedWeights& weights, size_t count,
                                                        absl::Time deadline) {
  auto found = buffers_.find(weights.buffer);
  while (found == buffers_.end()) {
    if (absl::Status note = TakeNote(deadline, AwakeWait::kAsleep); !note.ok()) return note;
    found = buffers_.find(weights.buffer);
  }
  Buffer& buffer = found->second;
  if (buffer.mapping.data() == nullptr) {
    absl::StatusOr<SharedMapping> mapping =
        MapSharedMemory(buffer.file, SharedValuesLayout::Bytes(count));
    if (absl::IsFailedPrecondition(mapping.status())) {
      return absl::InternalError(mapping.status().message());
    }
    if (!mapping.ok()) return mapping.status();
    buffer.mapping = *std::move(mapping);
    buffer.file = FileDescriptor();
  }
  return std::span<const float>(SharedValuesLayout::Values(buffer.mapping), count);
}

bool SharedLink::IsIntact(const SharedWeights& weights) const {
  const auto found = buffers_.find(weights.buffer);
  PS_CHECK(found != buffers_.end());
  return SharedValuesLayout::Filling(found->second.mapping) == weights.filling;
}

absl::Status SharedLink::TakeNote(absl::Time deadline, AwakeWait::Clock::time_point awake_until) {
  absl::StatusOr<ReceivedNote> received = NextNote(deadline, awake_until);
  return received.ok() ? Heed(*std::move(received)) : received.status();
}

absl::Status SharedLink::Heed(ReceivedNote received) {
  const LocalNote& note = received.note;
  switch (note.kind) {
    case LocalNote::Kind::kTaken:
      if (note.number < taken_ || note.number > placed_) break;
      taken_ = note.number;
      return absl::OkStatus();
    case LocalNote::Kind::kBuffer:
      if (!received.file.is_open()) break;
      buffers_[note.number] = {.file = std::move(received.file), .mapping = {}};
      return absl::OkStatus();
    case LocalNote::Kind::kForget:
      buffers_.erase(note.number);
      return absl::OkStatus();
    case LocalNote::Kind::kArena:
    case LocalNote::Kind::kMessage:
    case LocalNote::Kind::kOnStream:
      break;
  }
  return absl::InternalError("shared memory: a note that makes no sense");
}

absl::StatusOr<ReceivedNote> SharedLink::NextNote(absl::Time deadline,
                                                  AwakeWait::Clock::time_point awake_until) {
  bool is_over = false;
  for (;;) {
    const absl::Time now = SteadyNow();
    const bool stays_awake = now < deadline && AwakeWait::Clock::now() < awake_until;
    const absl::Duration sleep =
        stays_awake ? absl::ZeroDuration() : std::min(deadline - now, kLook);
    absl::StatusOr<std::optional<ReceivedNote>> note = ReceiveNote(socket_, sleep);
    if (!note.ok()) return note.status();
    if (note->has_value()) return **std::move(note);
    if (stays_awake) {
      std::this_thread::yield();
      continue;
    }
    if (cancel_.thrown()) return absl::CancelledError("stopped");
    if (is_over) return absl::UnavailableError("ended the call early");
    is_over = stream_.HasReadAhead();  // One more note may say that the answer is on the stream.
    if (now >= deadline) {
      return absl::DeadlineExceededError("shared memory: the shard does not go on");
    }
  }
}

}  // namespace slipstream
