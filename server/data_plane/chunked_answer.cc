#include "server/data_plane/chunked_answer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/rpc/transport_options.h"
#include "common/wire/chunk_wire.h"

namespace slipstream {
namespace {

/// Holding back smaller values gains little, and a slow link is then allowed a longer wait.
constexpr size_t kHeldBackBytesMin = size_t{1} << 20;

/// Returns the number of values in a message, which are whole blocks of the encoding.
size_t ChunkValues(size_t chunk_bytes, Encoding encoding) {
  const size_t block = RowOf(encoding).block_values;
  return std::max(chunk_bytes / sizeof(float) / block, size_t{1}) * block;
}

}  // namespace

ChunkedAnswer::ChunkedAnswer(Form form, Answer answer, size_t chunk_bytes, Encoding encoding,
                             std::optional<SharedWeights> shared)
    : form_(form),
      answer_(std::move(answer)),
      chunk_values_(ChunkValues(chunk_bytes, encoding)),
      encoding_(encoding),
      shared_(shared) {}

std::optional<WeightsTrailer> ChunkedAnswer::TrailerNow() const {
  if (trailer_ == nullptr || !is_finished_ || !has_values()) return std::nullopt;
  return trailer_(answer_);
}

grpc::ByteBuffer ChunkedAnswer::NextChanges() {
  std::optional<WeightsHeader> header;
  if (changes_sent_ == 0) header = answer_.header;
  const ValueChanges& part = changes_->at(changes_sent_++);
  is_finished_ = changes_sent_ == changes_->size();
  return EncodeChangesChunk(header, part, changes_, TrailerNow());
}

std::optional<grpc::ByteBuffer> ChunkedAnswer::Next() {
  if (is_finished_) return std::nullopt;
  if (changes_ != nullptr) return NextChanges();
  if (shared_.has_value()) {
    is_finished_ = true;
    return EncodeExchangeChunk(answer_.push, *answer_.header, *shared_);
  }
  const bool is_first = sent_ == 0;
  std::optional<WeightsHeader> header;
  if (is_first) header = answer_.header;
  LentValues lent;
  const uint64_t offset = sent_;
  if (has_values()) {
    const std::span<const float> values = answer_.weights->values();
    const size_t count = std::min<size_t>(chunk_values_, values.size() - sent_);
    lent = {values.subspan(sent_, count), answer_.weights};
    sent_ += count;
    if (encoding_ == Encoding::kFp32) borrowed_bytes_ = count * sizeof(float);
    is_finished_ = sent_ == values.size();
  } else {
    is_finished_ = true;
  }
  if (form_ == Form::kWeights) {
    return EncodeWeightsChunk(header, offset, std::move(lent), encoding_, TrailerNow());
  }
  return EncodeExchangeChunk(is_first ? answer_.push : std::nullopt, header, offset,
                             std::move(lent), encoding_);
}

bool ChunkedAnswer::has_values() const {
  return answer_.weights != nullptr && !shared_.has_value();
}

grpc::WriteOptions ChunkedAnswer::write_options() const {
  grpc::WriteOptions options;
  if (!is_finished_ && borrowed_bytes_ >= kHeldBackBytesMin) options.set_buffer_hint();
  return options;
}

size_t ChunkedAnswer::AwaitedBytesMax(size_t chunk_bytes) {
  return chunk_bytes +
         (chunk_bytes >= kHeldBackBytesMin ? TransportOptions{}.write_ahead_bytes : 0);
}

}  // namespace slipstream
