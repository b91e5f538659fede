#include "server/storage/log_format.h"

#include <string_view>

#include "common/base/archive.h"
#include "common/base/check.h"
#include "common/base/fixed_bytes.h"

namespace slipstream {
namespace {

// Each part of a segment begins with its name, and ends with the hash of the bytes before that.
constexpr std::string_view kHeadName = "slipstream log\n\n";
constexpr std::string_view kBatchName = "logbatch";
constexpr size_t kHashBytes = 16;

std::string WithHash(std::string text) {
  const BlockHash hash = HashOf(std::as_bytes(std::span(text)));
  return text + FixedBytes({hash.high, hash.low});
}

/// Returns what WithHash was given behind `name`; nothing if WithHash did not make `bytes`.
std::optional<std::string_view> BodyOf(std::span<const std::byte> bytes, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(name)) return std::nullopt;
  BlockHash hash;
  ReadFixedBytes(text.substr(text.size() - kHashBytes), {&hash.high, &hash.low});
  if (hash != HashOf(bytes.first(bytes.size() - kHashBytes))) return std::nullopt;
  return text.substr(name.size(), text.size() - name.size() - kHashBytes);
}

}  // namespace

std::string EncodeHead(const SegmentHead& head) {
  ArchiveWriter writer;
  writer(head.format, head.program, head.number, head.bytes_before);
  std::string text = std::string(kHeadName) + writer.Take();
  PS_CHECK(text.size() <= kSectorBytes - kHashBytes);
  text.resize(kSectorBytes - kHashBytes);
  return WithHash(std::move(text));
}

std::optional<SegmentHead> DecodeHead(std::span<const std::byte> bytes) {
  if (bytes.size() < kSectorBytes) return std::nullopt;
  const std::optional<std::string_view> body = BodyOf(bytes.first(kSectorBytes), kHeadName);
  if (!body) return std::nullopt;
  SegmentHead head;
  ArchiveReader reader(*body);
  reader(head.format, head.program, head.number, head.bytes_before);
  return head;
}

std::string EncodeBatchHeader(const BatchHeader& header) {
  return WithHash(std::string(kBatchName) +
                  FixedBytes({header.segment, header.batch, header.bytes, header.records,
                              header.body.high, header.body.low}));
}

std::optional<BatchHeader> DecodeBatchHeader(std::span<const std::byte> bytes) {
  if (bytes.size() < kBatchHeaderBytes) return std::nullopt;
  const std::optional<std::string_view> body = BodyOf(bytes.first(kBatchHeaderBytes), kBatchName);
  if (!body) return std::nullopt;
  BatchHeader header;
  ReadFixedBytes(*body, {&header.segment, &header.batch, &header.bytes, &header.records,
                         &header.body.high, &header.body.low});
  return header;
}

}  // namespace slipstream
