#include "worker/client/shard_exchange.h"

#include <fmt/format.h>

#include <utility>

#include "absl/time/clock.h"
#include "common/protocol/composite_push.h"
#include "worker/client/retries.h"
#include "worker/core/push_verdict.h"

namespace slipstream {
namespace {

absl::Status GivenUp() { return absl::AbortedError("the step was given up"); }

absl::Status FailureOf(const PushReply& refusal) {
  return absl::FailedPreconditionError(
      fmt::format("{}: {}", Name(refusal.outcome), refusal.message));
}

}  // namespace

ShardExchange::ShardExchange(ShardClient& shard, const ShardPush& push, WeightsArrival weights)
    : shard_(shard),
      push_(push),
      weights_(std::move(weights)),
      tries_(shard.NewTries(push_.header, !push_.values.empty())),
      connection_(&shard.connection()) {
  push_.header.count = push_.values.size();
  push_.header.chunk_bytes = static_cast<uint32_t>(shard.options().chunk_bytes);
  push_.header.weights_encoding = shard.options().weights_encoding;
}

ShardExchange::~ShardExchange() {
  if (!is_over_) connection_->Close();
}

absl::StatusOr<std::optional<ExchangeAnswer>> ShardExchange::Next() {
  if (std::exchange(is_answered_, false)) {
    const absl::Status taken = TakeWeights();
    if (taken.ok()) return End();
    if (absl::Status over = OnFailure(taken); !over.ok()) return over;
  }
  for (;;) {
    absl::StatusOr<ExchangeAnswer> answer = Try();
    absl::Status over;
    if (!answer.ok()) {
      over = OnFailure(answer.status());
    } else {
      const auto next = tries_.OnAnswer(answer->push, shard_.name(), shard_.options().now());
      if (next.ok()) Tell(*next);
      if (next.ok() && next->is_over) {
        is_answered_ = true;
        return *std::move(answer);
      }
      NoteEnd();
      over = AwaitNextTry(next, FailureOf(answer->push));
    }
    if (!over.ok()) return over;
  }
}

absl::Status ShardExchange::OnFailure(const absl::Status& why) {
  times_.end = absl::Now();
  if (is_given_up() || shard_.is_stopped()) {
    connection_->Close();
    return shard_.Final(why);
  }
  return AwaitNextTry(tries_.OnFailure(why, shard_.name(), shard_.options().now()), why);
}

absl::Status ShardExchange::AwaitNextTry(const absl::StatusOr<PushTries::Next>& next,
                                         const absl::Status& why) {
  weights_begin_.reset();
  if (!next.ok() || next->reopens) connection_->Close();
  if (!next.ok()) return shard_.Final(next.status());
  if (next->aggregator == PushTries::AggregatorNews::kFailed) {
    shard_.aggregator()->Leave(why, next->is_first_failure);
  } else if (next->aggregator == PushTries::AggregatorNews::kNotCombined) {
    shard_.aggregator()->LogNotCombined(why);
  }
  return AwaitRepetition(next->again, shard_.peer(), why, shard_.sleeper());
}

void ShardExchange::Tell(const PushTries::Next& next) {
  if (next.is_back) LogAnswersAgain(shard_.peer());
  if (next.aggregator == PushTries::AggregatorNews::kUsedAgain) shard_.aggregator()->LogUsedAgain();
}

absl::StatusOr<ExchangeAnswer> ShardExchange::Try() {
  // The step was aborted, so its answer is no longer needed: do not wait for an unreachable shard.
  if (is_given_up()) return GivenUp();
  const bool is_for_shard = tries_.Begin(shard_.options().now()) == PushTries::Peer::kShard;
  if (shard_.aggregator() != nullptr && push_.values.empty())
    shard_.aggregator()->connection().Close();
  connection_ = is_for_shard ? &shard_.connection() : &shard_.aggregator()->connection();
  push_.header.holds_base = weights_.Holds(push_.header.generation, push_.header.base);
  weights_.StartTry();
  if (absl::Status written = WritePush(); !written.ok()) return written;
  absl::StatusOr<ExchangeAnswer> answer = ReadAnswer();
  if (answer.ok() && push_.encoder != nullptr) {
    push_.encoder->OnOutcome(answer->push, Trailer().clip);
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
        (begin > 0 ? feed->AwaitFinal(shard_.range().begin + begin) : feed->AwaitTrailer());
    if (!goes_on) return GivenUp();
    // Open the stream only now: once a stream is open, the shard waits only for a limited time
    // until the caller identifies itself.
    if (is_first) {
      if (absl::Status opened = connection_->Open(); !opened.ok()) return opened;
    }
    const absl::Time begun = absl::Now();
    if (is_first) times_.push_begin = begun;
    if (is_first && end > 0 && connection_->is_unannounced()) {
      // Send the header first: over a slow link, values take longer than the shard waits for a
      // caller to identify itself.
      const absl::Status sent = connection_->Send({.header = push_.header, .begin = end});
      if (!sent.ok()) return sent;
      is_first = false;
    }
    if (absl::Status sent = SendChunk(begin, end, is_first); !sent.ok()) return sent;
    times_.push_end = absl::Now();
    times_.busy += times_.push_end - begun;
    is_first = false;
    end = begin;
  } while (end > 0);
  return absl::OkStatus();
}

PushTrailer ShardExchange::Trailer() const {
  PushTrailer trailer = push_.feed == nullptr ? push_.header.trailer : push_.feed->trailer();
  // Such a codec sends the errors of earlier pushes, whether or not there is a gradient.
  if (push_.encoder != nullptr && RowOf(push_.encoder->encoding()).feeds_error_back) {
    trailer.absent = {};
  }
  return trailer;
}

absl::Status ShardExchange::SendChunk(size_t begin, size_t end, bool is_first) {
  ShardConnection::Message message = {.begin = begin,
                                      .values = push_.values.subspan(begin, end - begin)};
  if (is_first) message.header = push_.header;
  // The last values of a push begin at 0, and are sent once the step is sealed.
  if (begin == 0) message.trailer = Trailer();
  if (push_.encoder != nullptr && end > 0) {
    message.encoded = push_.encoder->Encode(push_.values, begin, end);
    message.encoding = push_.encoder->encoding();
  }
  message.next = AfterChunk(begin);
  return connection_->Send(std::move(message));
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
  absl::StatusOr<ExchangeChunk> chunk = connection_->Receive();
  // The shard is reachable; it may be waiting for other workers.
  if (absl::IsDeadlineExceeded(chunk.status()) && tries_.OnWait()) LogAnswersAgain(shard_.peer());
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
    const absl::Status taken = connection_->Take(*chunk, weights_);
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
