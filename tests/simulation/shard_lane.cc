#include "tests/simulation/shard_lane.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/wire/chunk_wire.h"
#include "common/wire/shard_wire.h"
#include "common/wire/values_codec.h"
#include "proto/shard.pb.h"

namespace slipstream {
namespace {

constexpr size_t kChunkValues = 100;

// The same values as in AggregatorLink.
constexpr absl::Duration kFirstRest = absl::Seconds(1);
constexpr absl::Duration kRestMax = absl::Seconds(30);

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
                     Network& network, const RetryOptions& retry, uint64_t seed)
    : shard_(shard),
      process_(process),
      queue_(queue),
      network_(network),
      retry_(retry),
      seed_(seed + Value(shard)),
      aggregator_rest_(kFirstRest) {}

void ShardLane::Initialize(const InitializeHeader& header, std::span<const float> values,
                           Done done) {
  initialize_ = header;
  Begin(StreamKind::kInitialize, values, {}, std::move(done));
}

void ShardLane::Pull(const PullRequest& request, std::span<float> weights, Done done) {
  pull_ = request;
  Begin(StreamKind::kPull, {}, weights, std::move(done));
}

void ShardLane::Exchange(const PushHeader& header, std::span<const float> values,
                         PushEncoder* encoder, std::span<float> weights, Done done) {
  encoder_ = encoder;
  if (encoder_ != nullptr) encoder_->Begin();
  push_ = header;
  push_.count = values.size();
  goes_to_shard_ = false;
  // The aggregator must not wait for this worker, which has no gradient for it.
  if (values.empty() && aggregator_ != nullptr) network_.Drop(std::exchange(aggregator_, nullptr));
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
  weights_ = weights;
  done_ = std::move(done);
  schedule_.reset();
  answer_ = Answer();
  first_.reset();
  Try();
}

void ShardLane::Try() {
  if (answer_.push.has_value() && !IsRefusal(answer_.push->outcome)) first_ = answer_.push;
  answer_ = Answer();
  arrival_.emplace(weights_);
  is_to_aggregator_ = MayCombine();
  StreamPtr& stream = is_to_aggregator_ ? aggregator_ : stream_;
  if (stream == nullptr) Open(stream, is_to_aggregator_ ? group_ : std::nullopt);
  network_.SendUp(stream, Request());
}

bool ShardLane::MayCombine() const {
  const bool is_push = kind_ == StreamKind::kExchange && push_.count > 0;
  return group_.has_value() && is_push && !goes_to_shard_ &&
         queue_.now() >= aggregator_rests_until_;
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
  if (schedule_.has_value()) std::reverse(chunks.begin() + 1, chunks.end());
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
  PS_CHECK(arrival_->Take(chunk->header, chunk->offset, chunk->values.segments()).ok());
  if (arrival_->is_complete()) answer_.weights = arrival_->header();
}

void ShardLane::OnExchangeMessage(const grpc::ByteBuffer& message) {
  const absl::StatusOr<ExchangeChunk> chunk = DecodeExchangeChunk(message);
  PS_CHECK(chunk.ok() && chunk->push.has_value() != answer_.push.has_value());
  if (chunk->push.has_value()) answer_.push = chunk->push;
  const PushOutcome outcome = answer_.push->outcome;
  if (outcome == PushOutcome::kRetryLater || outcome == PushOutcome::kUnknownMember) {
    return TryLater(absl::Milliseconds(std::max(1u, answer_.push->retry_after_ms)));
  }
  if (is_to_aggregator_) {
    aggregator_rest_ = kFirstRest;
    if (answer_.push->outcome == PushOutcome::kNotCombined) {
      goes_to_shard_ = true;
      return Try();
    }
  }
  if (first_.has_value() && answer_.push->life > first_->life) {
    answer_.repeated = std::exchange(answer_.push, first_);
    return Succeed();
  }
  if (encoder_ != nullptr && chunk->push.has_value()) encoder_->OnOutcome(*chunk->push);
  if (!push_.pull || IsRefusal(answer_.push->outcome)) return Succeed();
  if (chunk->push.has_value() && !chunk->header.has_value()) return;  // The weights follow.
  PS_CHECK(arrival_->Take(chunk->header, chunk->offset, chunk->values.segments()).ok());
  if (!arrival_->is_complete()) return;
  answer_.weights = arrival_->header();
  Succeed();
}

void ShardLane::OnEnd(const StreamPtr& stream, const absl::Status& status) {
  if (stream == aggregator_) return OnAggregatorEnd();
  if (stream != stream_) return;
  stream_.reset();
  if (is_to_aggregator_) return;
  if (!is_busy() || is_pausing_) return;  // The next try opens a new stream.
  if (status.ok()) return Succeed();
  if (!IsTransient(status)) return Fail(status);
  if (!schedule_.has_value()) schedule_.emplace(retry_, seed_);
  const std::optional<absl::Duration> wait = schedule_->Next(status);
  if (!wait.has_value()) return Fail(status);
  TryLater(*wait);
}

void ShardLane::OnAggregatorEnd() {
  aggregator_.reset();
  aggregator_rests_until_ = queue_.now() + aggregator_rest_;
  aggregator_rest_ = std::min(aggregator_rest_ * 2, kRestMax);
  if (!is_busy() || is_pausing_ || !is_to_aggregator_) return;
  goes_to_shard_ = true;
  Try();
}

void ShardLane::TryLater(absl::Duration wait) {
  is_pausing_ = true;
  network_.AtProcess(process_, queue_.now() + wait, [this] {
    is_pausing_ = false;
    if (is_busy()) Try();
  });
}

void ShardLane::Succeed() { std::exchange(done_, nullptr)(answer_); }

void ShardLane::Fail(const absl::Status& status) { std::exchange(done_, nullptr)(status); }

}  // namespace slipstream
