#include "server/service/push_assembly.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/kernels/finite.h"
#include "common/wire/shard_wire.h"

namespace slipstream {
namespace {

// Each piece costs bookkeeping beside its bytes, which are all that admission counts.
constexpr size_t kSmallPiecesMax = 64;

}  // namespace

PushAssembly::PushAssembly(const PushHeader& header) : hash_(XXH3_createState()) {
  facts_.header = header;
  XXH3_64bits_reset(hash_.get());
}

absl::Status PushAssembly::Add(uint64_t offset, ReceivedValues values) {
  if (offset != facts_.values_received) {
    return absl::InvalidArgumentError(
        fmt::format("values from {} on came where {} was next", offset, facts_.values_received));
  }
  const uint64_t count = values.count();
  if (count == 0) return absl::OkStatus();  // Nothing to keep; a header may come alone.
  if (payload_.pieces.size() > kSmallPiecesMax + payload_.bytes / kChunkBytesMin) {
    return absl::InvalidArgumentError(
        fmt::format("too many chunks of less than {} bytes", kChunkBytesMin));
  }
  if (count > facts_.header.count - facts_.values_received) {
    return absl::InvalidArgumentError(fmt::format(
        "{} values came, {} were announced", facts_.values_received + count, facts_.header.count));
  }
  facts_.values_received += count;
  facts_.is_finite = facts_.is_finite && AllFinite(values.segments());
  for (const ByteSegment& segment : values.segments()) {
    XXH3_64bits_update(hash_.get(), segment.data(), segment.size());
    payload_.segments.push_back(segment);
    payload_.bytes += segment.size();
  }
  payload_.pieces.push_back(std::move(values));
  return absl::OkStatus();
}

ShardCore::PushFacts PushAssembly::Facts() const {
  PS_CHECK(is_complete());
  ShardCore::PushFacts facts = facts_;
  facts.checksum = XXH3_64bits_digest(hash_.get());
  return facts;
}

PushPayload PushAssembly::TakePayload() { return std::move(payload_); }

}  // namespace slipstream
