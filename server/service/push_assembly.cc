#include "server/service/push_assembly.h"

#include <fmt/format.h>

#include <cstring>
#include <iterator>
#include <utility>

#include "common/base/check.h"
#include "common/kernels/finite.h"
#include "common/wire/shard_wire.h"

namespace slipstream {
namespace {

// Each piece costs bookkeeping beside its bytes, which are all that admission counts.
constexpr size_t kSmallPiecesMax = 64;

// Of a chunk, for the passes over it: small enough for a core's own cache.
constexpr size_t kBlockBytes = size_t{64} << 10;
static_assert(kBlockBytes % sizeof(float) == 0, "a block holds whole values");

/// The values are this chunk's alone, and nobody has read them yet.
void Fill(const Segments& values, ByteSegment from) {
  for (const ByteSegment& segment : values) {
    std::memcpy(const_cast<std::byte*>(segment.data()), from.data(), segment.size());
    from = from.subspan(segment.size());
  }
}

std::string RangeText(uint64_t begin, uint64_t end) {
  return fmt::format("values {} to {}", begin, end - 1);
}

}  // namespace

PushAssembly::PushAssembly(const PushHeader& header, std::shared_ptr<UpdateDraft> draft) {
  facts_.header = header;
  payload_.draft = std::move(draft);
}

absl::Status PushAssembly::CheckPlace(uint64_t offset, uint64_t count) const {
  const uint64_t announced = facts_.header.count;
  if (offset > announced || count > announced - offset) {
    return absl::InvalidArgumentError(
        fmt::format("{} values from {} on came, {} were announced", count, offset, announced));
  }
  const auto next = pieces_.lower_bound(offset);
  if (next != pieces_.end() && next->first < offset + count) {
    return absl::InvalidArgumentError(
        fmt::format("{} came twice", RangeText(next->first, offset + count)));
  }
  if (next == pieces_.begin()) return absl::OkStatus();
  const auto& [before, values] = *std::prev(next);
  if (before + values.count() > offset) {
    return absl::InvalidArgumentError(
        fmt::format("{} came twice", RangeText(offset, before + values.count())));
  }
  return absl::OkStatus();
}

absl::Status PushAssembly::Add(uint64_t offset, ReceivedValues values, ByteSegment unread) {
  const uint64_t count = values.count();
  if (count == 0) return absl::OkStatus();  // Nothing to keep; a header may come alone.
  if (pieces_.size() > kSmallPiecesMax + payload_.bytes / kChunkBytesMin) {
    return absl::InvalidArgumentError(
        fmt::format("too many chunks of less than {} bytes", kChunkBytesMin));
  }
  if (absl::Status status = CheckPlace(offset, count); !status.ok()) return status;
  facts_.values_received += count;
  payload_.bytes += TotalBytes(values.segments());
  Examine(offset, values.segments(), unread);
  pieces_.emplace(offset, std::move(values));
  if (is_complete()) Assemble();
  return absl::OkStatus();
}

void PushAssembly::Examine(uint64_t offset, const Segments& values, ByteSegment unread) {
  PS_CHECK(unread.empty() || unread.size() == TotalBytes(values));
  hash_.Begin(offset);
  ForEachBlock(values, kBlockBytes, [&](size_t begin, const Segments& block) {
    if (!unread.empty()) Fill(block, unread.subspan(begin));
    facts_.is_finite = facts_.is_finite && AllFinite(block);
    for (const ByteSegment& segment : block) hash_.Add(segment);
    if (payload_.draft != nullptr) payload_.draft->Add(offset + begin / sizeof(float), block);
  });
  facts_.checksum += hash_.Finish();
}

void PushAssembly::Assemble() {
  for (auto& [offset, values] : pieces_) payload_.pieces.push_back(std::move(values));
  pieces_.clear();
}

std::string PushAssembly::Missing() const {
  PS_CHECK(!is_complete());
  uint64_t missing = 0;
  for (const auto& [offset, values] : pieces_) {
    if (offset > missing) return RangeText(missing, offset);
    missing = offset + values.count();
  }
  return RangeText(missing, facts_.header.count);
}

ShardCore::PushFacts PushAssembly::Facts() const {
  PS_CHECK(is_complete());
  return facts_;
}

PushPayload PushAssembly::TakePayload() { return std::move(payload_); }

}  // namespace slipstream
