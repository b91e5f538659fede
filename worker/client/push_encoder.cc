#include "worker/client/push_encoder.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/kernels/flushed_subnormals.h"
#include "common/kernels/segments.h"
#include "common/wire/value_encoding.h"

namespace slipstream {
namespace {

/// The number of values whose errors are computed in one pass, so that they stay in the cache. It
/// is a multiple of every encoding's block.
constexpr size_t kPieceValues = 1024;

static_assert(std::ranges::all_of(kEncodingRows, [](const EncodingRow& row) {
  return kPieceValues % row.block_values == 0;
}));

// Without errors to feed back, values are encoded where they lie, frozen ones included. None of
// those encodings lets a value change another one.
static_assert(std::ranges::all_of(kEncodingRows, [](const EncodingRow& row) {
  return row.block_values == 1 || row.feeds_error_back;
}));

/// Calls `act` with the begin and the end of each part of `ranges` that lies within [begin, end),
/// as positions from `begin` on.
template <typename Act>
void ForEachWithin(const std::vector<ParameterRange>& ranges, size_t begin, size_t end, Act act) {
  auto range = std::ranges::upper_bound(ranges, begin, {}, &ParameterRange::end);
  for (; range != ranges.end() && range->begin < end; ++range) {
    act(std::max(range->begin, begin) - begin, std::min(range->end, end) - begin);
  }
}

/// Returns the mean of the values that are not negative, where `ignored` zeros do not count; 0 if
/// there are none.
float MeanOfOneSide(std::span<const float> values, size_t ignored) {
  double sum = 0;
  size_t count = 0;
  for (const float value : values) {
    sum += value >= 0 ? double{value} : 0.0;
    count += value >= 0 ? 1 : 0;
  }
  return count == ignored ? 0.0f : static_cast<float>(sum / static_cast<double>(count - ignored));
}

/// Replaces the frozen values of the block that begins at `begin` by values that change nothing for
/// the others: by 0, or where zeros take part in a mean, by what that mean is without them.
void Neutralize(const std::vector<ParameterRange>& frozen, const EncodingRow& encoding,
                size_t begin, std::span<float> block) {
  size_t replaced = 0;
  const auto replace_by = [&](float value) {
    replaced = 0;
    ForEachWithin(frozen, begin, begin + block.size(), [&](size_t from, size_t to) {
      std::ranges::fill(block.subspan(from, to - from), value);
      replaced += to - from;
    });
  };
  replace_by(0);
  if (encoding.averages_zeros && replaced > 0) replace_by(MeanOfOneSide(block, replaced));
}

std::shared_ptr<std::byte[]> NewBytes(Encoding encoding, size_t values) {
  return std::make_shared_for_overwrite<std::byte[]>(EncodedBytes(encoding, values));
}

}  // namespace

PushEncoder::PushEncoder(Encoding encoding, size_t values, std::vector<ParameterRange> frozen)
    : encoding_(encoding),
      values_(values),
      frozen_(std::move(frozen)),
      bytes_(NewBytes(encoding, values)),
      encoded_from_(values) {
  if (!RowOf(encoding).feeds_error_back) return;
  error_.resize(values);
  next_error_.resize(values);
}

void PushEncoder::Begin() {
  // The transport may still be sending bytes of a push that was given up.
  if (bytes_.use_count() > 1) bytes_ = NewBytes(encoding_, values_);
  encoded_from_ = values_;
  is_settled_ = false;
}

std::span<std::byte> PushEncoder::BytesOf(size_t begin, size_t end) {
  const size_t first = EncodedBytes(encoding_, begin);
  return {bytes_.get() + first, EncodedBytes(encoding_, end) - first};
}

LentBytes PushEncoder::Encode(std::span<const float> gradient, size_t begin, size_t end) {
  PS_CHECK(gradient.size() == values_ && begin % RowOf(encoding_).block_values == 0);
  if (begin < encoded_from_) {
    PS_CHECK(end == encoded_from_);
    EncodeChunk(gradient, begin, end);
    encoded_from_ = begin;
  }
  return {BytesOf(begin, end), bytes_};
}

void PushEncoder::EncodeChunk(std::span<const float> gradient, size_t begin, size_t end) {
  if (error_.empty()) {
    slipstream::Encode(encoding_, gradient.subspan(begin, end - begin), BytesOf(begin, end));
    return;
  }
  for (size_t at = begin; at < end; at += kPieceValues) {
    EncodeWithError(gradient, at, std::min(at + kPieceValues, end));
  }
}

void PushEncoder::EncodeWithError(std::span<const float> gradient, size_t begin, size_t end) {
  float wanted[kPieceValues];
  float sent[kPieceValues];
  const size_t count = end - begin;
  for (size_t i = 0; i < count; ++i) wanted[i] = gradient[begin + i] + error_[begin + i];
  const EncodingRow& row = RowOf(encoding_);
  for (size_t at = 0; at < count && !frozen_.empty(); at += row.block_values) {
    Neutralize(frozen_, row, begin + at, {wanted + at, std::min(row.block_values, count - at)});
  }
  const std::span<std::byte> bytes = BytesOf(begin, end);
  slipstream::Encode(encoding_, {wanted, count}, bytes);
  Decode(encoding_, {bytes}, {sent, count});
  for (size_t i = 0; i < count; ++i) next_error_[begin + i] = wanted[i] - sent[i];
  ForEachWithin(frozen_, begin, end, [&](size_t from, size_t to) {
    std::ranges::fill(std::span(next_error_).subspan(begin + from, to - from), 0.0f);
  });
}

void PushEncoder::OnOutcome(const PushReply& reply, float clip) {
  if (error_.empty() || !Counts(reply) || encoded_from_ > 0) return;
  if (std::exchange(is_settled_, true)) return;
  error_.swap(next_error_);
  if (clip == 1) return;
  const FlushedSubnormals flushed;
  for (size_t i = 0; i < error_.size(); ++i) {
    error_[i] = clip * error_[i] + (1 - clip) * next_error_[i];
  }
}

}  // namespace slipstream
