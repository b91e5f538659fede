#include "tests/simulation/shard_lane.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/protocol/composite_push.h"
#include "common/wire/chunk_wire.h"
#include "common/wire/shard_wire.h"
#include "common/wire/values_codec.h"
#include "proto/shard.pb.h"

namespace slipstream {
namespace {

constexpr size_t kChunkValues = 100;

/// Cuts the values into chunks, and returns the message that `encode` makes of each.
template <typename Encode>
std::vector<grpc::ByteBuffer> Chunked(std::span<const float> values, Encode encode) {
  std::vector<grpc::ByteBuffer> messages;
  size_t offset = 0;
  do {
    const auto piece = values.subspan(offset, std::min(kChunkValues, values.size() - offset));
    messages.push_back(encode(offset, LentValues{piece, nullptr}));
    offset += piece.size();
  } while (offset < values.size());
  return messages;
}

}  // namespace

ShardLane::ShardLane(ShardId shard, const std::shared_ptr<Process>& process, EventQueue& queue,
                     Network& network, const PushTries::Options& options,
                     std::optional<uint32_t> group, History* history)
    : shard_(shard),
      process_(process),
      queue_(queue),
      network_(network),
      options_(options),
      group_(group),
      history_(history) {}

void ShardLane::Initialize(const InitializeHeader& header, std::span<const float> values,
                           Done done) {
  initialize_ = header;
  initialize_.count = values.size();
  Begin(StreamKind::kInitialize, values, {}, std::move(done));
}

void ShardLane::Pull(const PullRequest& request, std::span<float> weights, Done done) {
  pull_ = request;
  Begin(StreamKind::kPull, {}, weights, std::move(done));
}

void ShardLane::Exchange(const PushHeader& header, std::span<const float> values,
                         PushEncoder* encoder, std::span<float> weights, bool holds_base,
                         OnAnswer on_answer, Done done) {
  encoder_ = encoder;
  if (encoder_ != nullptr) encoder_->Begin();
  push_ = header;
  push_.count = values.size();
  on_answer_ = std::move(on_answer);
  push_tries_.emplace(
      options_, PushTries::Push{.has_values = !values.empty(), .is_composite = IsComposite(header)},
      group_.has_value() ? &use_ : nullptr);
  // The aggregator must not wait for this worker, which has no gradient for it.
  if (values.empty() && aggregator_ != nullptr) network_.Drop(std::exchange(aggregator_, nullptr));
  weights_.emplace(weights);
  if (holds_base) weights_->StartFrom(header.generation, header.base);
  Begin(StreamKind::kExchange, values, weights, std::move(done));
}

void ShardLane::Begin(StreamKind kind, std::span<const float> values, std::span<float> weights,
                      Done done) {
  PS_CHECK(!is_busy());
  if (stream_ != nullptr && stream_->kind != kind) {
    network_.Drop(stream_);
    stream_.reset();
  }
  kind_ = kind;
  values_ = values;
  if (kind != StreamKind::kExchange) weights_.emplace(weights);
  done_ = std::move(done);
  call_tries_.emplace(options_.retry, options_.seed);
  is_repetition_ = false;
  Try();
}

void ShardLane::Try() {
  reply_.reset();
  is_answered_ = false;
  is_to_aggregator_ = false;
  if (kind_ == StreamKind::kExchange) {
    is_to_aggregator_ = push_tries_->Begin(queue_.now()) == PushTries::Peer::kAggregator;
    push_.holds_base = weights_->Holds(push_.generation, push_.base);
    if (history_ != nullptr) {
      history_->Add(
          PushTried{KeyOf(shard_, push_), push_.count > 0, is_to_aggregator_, queue_.now()});
    }
  } else {
    call_tries_->OnBegin(queue_.now());
  }
  weights_->StartTry();
  StreamPtr& stream = is_to_aggregator_ ? aggregator_ : stream_;
  if (stream == nullptr) Open(stream, is_to_aggregator_ ? group_ : std::nullopt);
  network_.SendUp(stream, Request());
}

void ShardLane::Open(StreamPtr& stream, std::optional<uint32_t> group) {
  stream = network_.Open(kind_, shard_, process_, group);
  const std::weak_ptr<Stream> weak = stream;
  stream->on_message = [this, weak](const grpc::ByteBuffer& message) {
    OnMessage(weak.lock(), message);
  };
  stream->on_end = [this, weak](const absl::Status& status) { OnEnd(weak.lock(), status); };
}

void ShardLane::HangUp() {
  PS_CHECK(!is_busy());
  if (stream_ != nullptr) network_.Drop(std::exchange(stream_, nullptr));
}

std::vector<grpc::ByteBuffer> ShardLane::Request() const {
  if (kind_ == StreamKind::kPull) {
    const grpc::Slice slice(ToWire(pull_).SerializeAsString());
    std::vector<grpc::ByteBuffer> message;
    message.emplace_back(&slice, 1);
    return message;
  }
  if (kind_ == StreamKind::kInitialize) {
    return Chunked(values_, [this](size_t offset, LentValues lent) {
      return EncodeInitializeChunk(offset == 0 ? std::optional(initialize_) : std::nullopt, offset,
                                   std::move(lent));
    });
  }
  std::vector<grpc::ByteBuffer> chunks = PushChunks();
  // The rest of a push may come in any order, so a repetition uses another one.
  if (is_repetition_) std::reverse(chunks.begin() + 1, chunks.end());
  return chunks;
}

std::vector<grpc::ByteBuffer> ShardLane::PushChunks() const {
  if (encoder_ != nullptr && !values_.empty()) {
    // A simulated shard fits into one block of the codec.
    std::vector<grpc::ByteBuffer> whole;
    whole.push_back(EncodePushChunk(push_, 0, encoder_->Encode(values_, 0, values_.size()),
                                    encoder_->encoding()));
    return whole;
  }
  return Chunked(values_, [this](size_t offset, LentValues lent) {
    return EncodePushChunk(offset == 0 ? std::optional(push_) : std::nullopt, offset,
                           std::move(lent));
  });
}

void ShardLane::OnMessage(const StreamPtr& stream, const grpc::ByteBuffer& message) {
  if (!is_busy()) return;
  PS_CHECK(stream == (is_to_aggregator_ ? aggregator_ : stream_));
  if (kind_ == StreamKind::kExchange) return OnExchangeMessage(message);
  const absl::StatusOr<WeightsChunk> chunk = DecodeWeightsChunk(message);
  PS_CHECK(chunk.ok());
  PS_CHECK(weights_->Take(chunk->header, chunk->offset, chunk->values.segments()).ok());
}

void ShardLane::OnExchangeMessage(const grpc::ByteBuffer& message) {
  const absl::StatusOr<ExchangeChunk> chunk = DecodeExchangeChunk(message);
  PS_CHECK(chunk.ok() && chunk->push.has_value() != reply_.has_value());
  if (chunk->push.has_value()) reply_ = chunk->push;
  const bool brings_weights = push_.pull && !IsRefusal(reply_->outcome);
  if (!is_answered_) {
    if (brings_weights && !chunk->header.has_value()) return;  // It follows.
    if (!Deliver({.push = *reply_, .weights = chunk->header})) return;
    if (!brings_weights) return End(std::nullopt);
  }
  PS_CHECK(weights_->Take(chunk->header, chunk->offset, chunk->values.segments()).ok());
  if (weights_->is_complete()) End(weights_->header());
}

void ShardLane::NoteAggregator(std::optional<PushOutcome> outcome) {
  if (!is_to_aggregator_ || history_ == nullptr) return;
  history_->Add(AggregatorAnswered{KeyOf(shard_, push_), outcome, queue_.now()});
}

bool ShardLane::Deliver(const ExchangeAnswer& answer) {
  NoteAggregator(answer.push.outcome);
  if (encoder_ != nullptr) encoder_->OnOutcome(answer.push);
  const absl::StatusOr<PushTries::Next> next =
      push_tries_->OnAnswer(answer.push, "the shard", queue_.now());
  if (!next.ok() || !next->is_over) {
    Repeat(next);
    return false;
  }
  is_answered_ = true;
  const absl::Status heeded = on_answer_(answer);
  if (!heeded.ok() && is_busy()) End(heeded);
  return is_busy();
}

void ShardLane::OnEnd(const StreamPtr& stream, const absl::Status& status) {
  const bool is_aggregator = stream == aggregator_;
  if (!is_aggregator && stream != stream_) return;
  (is_aggregator ? aggregator_ : stream_).reset();
  // If another try follows, it opens a new stream.
  if (!is_busy() || is_pausing_ || is_aggregator != is_to_aggregator_) return;
  if (kind_ == StreamKind::kExchange) {
    PS_CHECK(!status.ok());
    NoteAggregator(std::nullopt);
    return Repeat(push_tries_->OnFailure(status, "the shard", queue_.now()));
  }
  if (status.ok()) return End(weights_->header());
  const auto again = call_tries_->OnFailure(status, "the shard", queue_.now());
  if (!again.ok()) return End(again.status());
  Repeat(PushTries::Next{.again = *again});
}

void ShardLane::Repeat(const absl::StatusOr<PushTries::Next>& next) {
  if (!next.ok()) return End(next.status());
  is_repetition_ = true;
  const bool leaves_aggregator = next->aggregator == PushTries::AggregatorNews::kFailed;
  if (leaves_aggregator && aggregator_ != nullptr) {
    network_.Drop(std::exchange(aggregator_, nullptr));
  }
  if (next->again.wait == absl::ZeroDuration()) return Try();
  is_pausing_ = true;
  network_.AtProcess(process_, queue_.now() + next->again.wait, [this] {
    is_pausing_ = false;
    if (is_busy()) Try();
  });
}

void ShardLane::End(const absl::StatusOr<std::optional<WeightsHeader>>& result) {
  std::exchange(done_, nullptr)(result);
}

}  // namespace slipstream
