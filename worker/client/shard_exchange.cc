#include "worker/client/shard_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/duration_text.h"
#include "common/protocol/composite_push.h"
#include "worker/core/push_verdict.h"

namespace slipstream {
namespace {

absl::Status GivenUp() { return absl::AbortedError("the step was given up"); }

}  // namespace

ShardExchange::ShardExchange(ShardClient& shard, const ShardPush& push, WeightsArrival weights)
    : shard_(shard),
      push_(push),
      weights_(std::move(weights)),
      retries_(shard.NewRetries()),
      stream_(&shard.stream()) {
  push_.header.count = push_.values.size();
  push_.header.chunk_bytes = static_cast<uint32_t>(shard.options().chunk_bytes);
  push_.header.weights_encoding = shard.options().weights_encoding;
}

ShardExchange::~ShardExchange() {
  if (!is_over_) stream_->Close();
}

absl::StatusOr<std::optional<ExchangeAnswer>> ShardExchange::Next() {
  if (std::exchange(is_answered_, false)) {
    const absl::Status taken = TakeWeights();
    if (taken.ok()) return End();
    if (absl::Status over = AwaitNextTry(taken); !over.ok()) return over;
  }
  for (;;) {
    absl::StatusOr<ExchangeAnswer> answer = Try();
    if (answer.ok() && is_for_aggregator() && IsRefusal(answer->push.outcome)) {
      shard_.aggregator()->OnRefusal(answer->push);
      is_for_shard_ = true;
      NoteEnd();
      continue;
    }
    const bool is_not_combined = answer.ok() && answer->push.outcome == PushOutcome::kNotCombined;
    if (is_not_combined && !IsComposite(push_.header)) {
      return shard_.Final(absl::InternalError("answer: NOT_COMBINED to the push of one worker"));
    }
    const bool is_busy =
        answer.ok() && !is_not_combined && Judge(answer->push.outcome) == PushVerdict::kSendAgain;
    if (answer.ok() && !is_busy) {
      is_answered_ = true;
      return *std::move(answer);
    }
    const absl::Status over = is_busy ? AwaitMemory(answer->push) : AwaitNextTry(answer.status());
    if (!over.ok()) return over;
  }
}

absl::Status ShardExchange::AwaitNextTry(const absl::Status& failure) {
  stream_->Close();  // The next try starts on a new stream.
  weights_begin_.reset();
  overload_end_.reset();
  times_.end = absl::Now();
  if (is_for_aggregator() && !is_given_up() && !shard_.is_stopped()) {
    shard_.aggregator()->OnFailure(failure);
    is_for_shard_ = true;
    return absl::OkStatus();
  }
  return IsTransient(failure) ? retries_.Await(failure) : shard_.Final(failure);
}

absl::Status ShardExchange::AwaitMemory(const PushReply& reply) {
  NoteEnd();
  const absl::Time now = shard_.options().retry.now();
  if (!overload_end_.has_value()) overload_end_ = now + shard_.options().overload_timeout;
  if (now > *overload_end_) {
    return absl::UnavailableError(fmt::format("{} has been overloaded for {}", shard_.name(),
                                              DurationText(shard_.options().overload_timeout)));
  }
  return retries_.AwaitFor(absl::Milliseconds(std::max(1u, reply.retry_after_ms)));
}

void ShardExchange::ChooseStream() {
  stream_ = &shard_.stream();
  AggregatorLink* const aggregator = shard_.aggregator();
  if (aggregator == nullptr) return;
  if (push_.values.empty()) {
    aggregator->stream().Close();
  } else if (!is_for_shard_ && aggregator->IsUsable()) {
    stream_ = &aggregator->stream();
  }
}

absl::StatusOr<ExchangeAnswer> ShardExchange::Try() {
  // The step was aborted, so its answer is no longer needed: do not wait for an unreachable shard.
  if (is_given_up()) return GivenUp();
  ChooseStream();
  retries_.Begin();
  push_.header.holds_base = weights_.Holds(push_.header.life, push_.header.base);
  weights_.StartTry();
  if (absl::Status written = WritePush(); !written.ok()) return written;
  absl::StatusOr<ExchangeAnswer> answer = ReadAnswer();
  if (answer.ok() && is_for_aggregator() && !IsRefusal(answer->push.outcome)) {
    shard_.aggregator()->OnAnswer();
  }
  if (answer.ok() && !is_for_aggregator()) retries_.OnReached();
  if (answer.ok() && push_.encoder != nullptr) {
    push_.encoder->OnOutcome(answer->push, Seal().clip);
  }
  return answer;
}

absl::Status ShardExchange::WritePush() {
  const size_t chunk_values = shard_.options().chunk_bytes / sizeof(float);
  GradientFeed* const feed = push_.feed;
  bool is_first = true;
  size_t end = push_.values.size();
  do {
    const size_t begin = end == 0 ? 0 : (end - 1) / chunk_values * chunk_values;
    const bool goes_on =
        feed == nullptr ||
        (begin > 0 ? feed->AwaitFinal(shard_.range().begin + begin) : feed->AwaitSeal());
    if (!goes_on) return GivenUp();
    // Open the stream only now: once a stream is open, the shard waits only for a limited time
    // until the caller identifies itself.
    if (is_first) {
      if (absl::Status opened = stream_->Open(); !opened.ok()) return opened;
    }
    const absl::Time begun = absl::Now();
    if (is_first) times_.push_begin = begun;
    if (is_first && end > 0 && stream_->is_unannounced()) {
      // Send the header first: over a slow link, values take longer than the shard waits for a
      // caller to identify itself.
      const grpc::ByteBuffer header = EncodePushChunk(push_.header, end, LentValues{});
      if (absl::Status sent = stream_->Send(header, RawCall::Next::kWrites); !sent.ok()) {
        return sent;
      }
      is_first = false;
    }
    const absl::StatusOr<grpc::ByteBuffer> message = PushMessage(begin, end, is_first);
    if (!message.ok()) return message.status();
    const absl::Status sent = stream_->Send(*message, AfterChunk(begin));
    if (!sent.ok()) return sent;
    times_.push_end = absl::Now();
    times_.busy += times_.push_end - begun;
    is_first = false;
    end = begin;
  } while (end > 0);
  return absl::OkStatus();
}

PushSeal ShardExchange::Seal() const {
  PushSeal seal = push_.feed == nullptr ? push_.header.seal : push_.feed->seal();
  // Such a codec sends the errors of earlier pushes, whether or not there is a gradient.
  if (push_.encoder != nullptr && RowOf(push_.encoder->encoding()).feeds_error_back) {
    seal.absent = {};
  }
  return seal;
}

absl::StatusOr<grpc::ByteBuffer> ShardExchange::PushMessage(size_t begin, size_t end,
                                                            bool is_first) {
  const auto header = is_first ? std::optional(push_.header) : std::nullopt;
  // The last values of a push begin at 0, and are sent once the step is sealed.
  const PushSeal seal = begin == 0 ? Seal() : PushSeal();
  const std::span<const float> values = push_.values.subspan(begin, end - begin);
  if (push_.encoder != nullptr && !values.empty()) {
    LentBytes encoded = push_.encoder->Encode(push_.values, begin, end);
    encoded.owner = shard_.loan().Lend(std::move(encoded.owner));
    return EncodePushChunk(header, begin, std::move(encoded), push_.encoder->encoding(), seal);
  }
  const absl::StatusOr<std::optional<SharedValues>> placed = stream_->Place(values);
  if (!placed.ok()) return placed.status();
  if (placed->has_value()) return EncodePushChunk(header, begin, **placed, seal);
  LentValues lent = {values, shard_.loan().Lend()};
  return EncodePushChunk(header, begin, std::move(lent), Encoding::kFp32, seal);
}

RawCall::Next ShardExchange::AfterChunk(size_t begin) const {
  if (begin == 0) return RawCall::Next::kReads;
  const GradientFeed* const feed = push_.feed;
  const size_t next = begin - shard_.options().chunk_bytes / sizeof(float);
  const bool is_there = feed == nullptr ||
                        (next > 0 ? feed->IsDecided(shard_.range().begin + next) : feed->is_over());
  return is_there ? RawCall::Next::kWrites : RawCall::Next::kPauses;
}

absl::StatusOr<ExchangeChunk> ShardExchange::Receive(bool is_first) {
  absl::StatusOr<ExchangeChunk> chunk = stream_->Receive();
  // The shard is reachable; it may be waiting for other workers.
  if (absl::IsDeadlineExceeded(chunk.status())) retries_.OnReached();
  if (chunk.ok() && chunk->push.has_value() != is_first) {
    return absl::InternalError("answer: not one outcome, in its first message");
  }
  return chunk;
}

absl::StatusOr<ExchangeAnswer> ShardExchange::ReadAnswer() {
  absl::StatusOr<ExchangeChunk> chunk = Receive(/*is_first=*/true);
  if (!chunk.ok()) return chunk.status();
  times_.answered = absl::Now();
  ExchangeAnswer answer = {.push = *std::move(chunk->push), .weights = {}};
  if (!push_.header.pull || IsRefusal(answer.push.outcome)) return answer;
  if (!chunk->header.has_value()) chunk = Receive(/*is_first=*/false);
  if (!chunk.ok()) return chunk.status();
  if (!chunk->header.has_value()) return absl::InternalError("answer: weights without a header");
  answer.weights = chunk->header;
  weights_begin_ = *std::move(chunk);
  return answer;
}

absl::Status ShardExchange::TakeWeights() {
  std::optional<ExchangeChunk> chunk = std::exchange(weights_begin_, std::nullopt);
  while (chunk.has_value()) {
    const absl::Status taken = stream_->Take(*chunk, weights_);
    if (!taken.ok() || weights_.is_complete()) return taken;
    chunk.reset();  // The next message reuses this memory while it is in the cache.
    absl::StatusOr<ExchangeChunk> next = Receive(/*is_first=*/false);
    if (!next.ok()) return next.status();
    chunk = *std::move(next);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<ExchangeAnswer>> ShardExchange::End() {
  is_over_ = true;
  NoteEnd();
  // Wait first: the last weights let the next step start, and it may overwrite the gradient.
  if (absl::Status returned = shard_.AwaitReturn(); !returned.ok()) return returned;
  if (weights_.is_complete()) weights_.Finish();
  return std::nullopt;
}

void ShardExchange::NoteEnd() {
  times_.end = absl::Now();
  times_.busy += times_.end - times_.push_end;
}

}  // namespace slipstream
