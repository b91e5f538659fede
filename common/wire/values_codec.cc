#include "common/wire/values_codec.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/kernels/copy_values.h"  // Refuses big-endian hosts.
#include "common/wire/slice_cursor.h"

namespace slipstream {
namespace {

constexpr uint32_t kValuesField = 15;

enum class WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr char kValuesTag = (kValuesField << 3) | static_cast<uint32_t>(WireType::kBytes);

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

/// Called by gRPC, with the owner that was given beside the slice, when nothing refers to the
/// slice.
void ReleaseOwner(void* owner) { delete static_cast<std::shared_ptr<const void>*>(owner); }

grpc::Slice Lend(LentBytes lent) {
  // gRPC's slices hold mutable memory, but gRPC never writes to slices that it sends.
  void* const bytes = const_cast<std::byte*>(lent.bytes.data());
  return {bytes, lent.bytes.size(), ReleaseOwner,
          new std::shared_ptr<const void>(std::move(lent.owner))};
}

/// Splits the fields of one message. The values stay where they lie; the other fields are copied.
class FieldScan {
 public:
  explicit FieldScan(const std::vector<grpc::Slice>& slices) : cursor_(slices) {}

  absl::Status Run() {
    while (cursor_.remaining() > 0) {
      if (absl::Status status = Next(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  const std::string& rest() const { return rest_; }
  Segments TakeValues() { return std::move(values_); }

 private:
  absl::Status Next() {
    std::string raw;
    // As in protobuf, tags and lengths have no more bytes than 32 bits need.
    const std::optional<uint64_t> tag = cursor_.ReadVarint(raw, SliceCursor::kShortVarintBytesMax);
    if (!tag || *tag > std::numeric_limits<uint32_t>::max() || *tag >> 3 == 0) {
      return absl::InvalidArgumentError("malformed message: no field number");
    }
    const auto type = static_cast<WireType>(*tag & 7);
    const absl::StatusOr<size_t> length = Length(type, raw);
    if (!length.ok()) return length.status();
    if (*length > cursor_.remaining()) {
      return absl::InvalidArgumentError("malformed message: field " + std::to_string(*tag >> 3) +
                                        " is longer than the message");
    }
    if (*tag >> 3 == kValuesField && type == WireType::kBytes) {
      values_ = cursor_.Take(*length);
      return absl::OkStatus();
    }
    return Keep(raw, *length);
  }

  /// Returns the number of bytes that follow those of the field in `raw`.
  absl::StatusOr<size_t> Length(WireType type, std::string& raw) {
    std::optional<uint64_t> number;
    switch (type) {
      case WireType::kFixed64:
        return 8;
      case WireType::kFixed32:
        return 4;
      case WireType::kVarint:
        number = cursor_.ReadVarint(raw);
        if (number) return 0;
        break;
      case WireType::kBytes:
        number = cursor_.ReadVarint(raw, SliceCursor::kShortVarintBytesMax);
        if (number) return *number;
        break;
      default:
        return absl::InvalidArgumentError("malformed message: wire type " +
                                          std::to_string(static_cast<uint32_t>(type)));
    }
    return absl::InvalidArgumentError("malformed message: endless number");
  }

  absl::Status Keep(const std::string& raw, size_t length) {
    if (rest_.size() + raw.size() + length > kRestBytesMax) {
      return absl::InvalidArgumentError("fields beside the values take more than " +
                                        std::to_string(kRestBytesMax) + " bytes");
    }
    rest_ += raw;
    for (const ByteSegment& piece : cursor_.Take(length)) {
      rest_.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
    return absl::OkStatus();
  }

  SliceCursor cursor_;
  std::string rest_;
  Segments values_;
};

}  // namespace

ReceivedValues::Buffer ReceivedValues::MakeBuffer(size_t count) {
  std::unique_ptr<float[]> values(new float[count]);
  const std::span<float> to(values.get(), count);
  return {ReceivedValues(std::move(values), count, 0), to};
}

grpc::ByteBuffer EncodeWithValues(const google::protobuf::MessageLite& rest, LentBytes lent) {
  std::string head = rest.SerializeAsString();
  if (lent.bytes.empty()) {
    const grpc::Slice only(head);
    return {&only, 1};
  }
  head.push_back(kValuesTag);
  AppendVarint(lent.bytes.size(), head);
  const grpc::Slice slices[] = {grpc::Slice(head), Lend(std::move(lent))};
  return {slices, 2};
}

absl::StatusOr<ReceivedValues> DecodeWithValues(const grpc::ByteBuffer& message,
                                                google::protobuf::MessageLite& rest) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return absl::InvalidArgumentError("no message");
  FieldScan scan(slices);
  if (absl::Status status = scan.Run(); !status.ok()) return status;
  const std::string& other = scan.rest();
  if (!rest.ParseFromArray(other.data(), static_cast<int>(other.size()))) {
    return absl::InvalidArgumentError("malformed message: not a " + rest.GetTypeName());
  }
  return ReceivedValues(std::move(slices), scan.TakeValues());
}

}  // namespace slipstream
