#include "common/wire/shard_wire.h"

#include <string>

#include "common/base/limits.h"
#include "common/layout/tensor_layout.h"
#include "common/wire/wire_fields.h"

namespace slipstream {

namespace v1 {

// FromMessage finds them by their arguments.
static bool IsKnown(Durability durability) { return Durability_IsValid(durability); }
static bool IsKnown(Encoding encoding) { return Encoding_IsValid(encoding); }
static bool IsKnown(PushKind kind) { return PushKind_IsValid(kind); }
static bool IsKnown(PushOutcome outcome) { return PushOutcome_IsValid(outcome); }
static bool IsKnown(RoundWork::Kind kind) { return RoundWork::Kind_IsValid(kind); }

}  // namespace v1

namespace {

/// Bounds mini-batch numbers so that sums of them cannot overflow.
constexpr uint64_t kBatchMax = uint64_t{1} << 56;

std::string Impossible(const char* field, uint64_t value) {
  return FromMessage::Impossible(field, value);
}

std::string CountFault(uint64_t count) {
  return count <= TensorLayout::kParametersMax ? "" : Impossible("count", count);
}

std::string ChunkBytesFault(uint32_t bytes) {
  const bool possible = bytes == 0 || (bytes >= kChunkBytesMin && bytes <= kChunkBytesMax &&
                                       bytes % sizeof(float) == 0);
  return possible ? "" : Impossible("chunk_bytes", bytes);
}

/// Not all encodings carry weights.
std::string WeightsEncodingFault(Encoding encoding) {
  if (RowOf(encoding).carries_weights) return "";
  return "weights_encoding: weights do not travel as " + std::string(RowOf(encoding).name);
}

/// Returns the first of them that is not empty.
std::string FirstOf(std::string first, std::string second) {
  return first.empty() ? second : first;
}

}  // namespace

template <>
struct WireOf<Identity> {
  using Message = v1::Identity;
  template <typename Map, typename Self, typename Wire>
  static void Fields(Map& map, Self& self, Wire& wire) {
    WIRE_FIELD(run, run);
    WIRE_FIELD(worker, worker);
    WIRE_FIELD(incarnation, incarnation);
  }
};

template <>
struct WireOf<Stamp> {
  using Message = v1::Stamp;
  template <typename Map, typename Self, typename Wire>
  static void Fields(Map& map, Self& self, Wire& wire) {
    WIRE_FIELD(publisher, publisher);
    WIRE_FIELD(number, number);
  }
};

template <>
struct WireOf<BatchRange> {
  using Message = v1::BatchRange;
  template <typename Map, typename Self, typename Wire>
  static void Fields(Map& map, Self& self, Wire& wire) {
    WIRE_FIELD(first, first);
    WIRE_FIELD(count, count);
  }
  static std::string Fault(const BatchRange& range, const Message&) {
    if (range.count == 0 || range.count > kBatchMax) return Impossible("count", range.count);
    return range.first <= kBatchMax ? "" : Impossible("first", range.first);
  }
};

template <>
struct WireOf<PushPart> {
  using Message = v1::PushPart;
  template <typename Map, typename Self, typename Wire>
  static void Fields(Map& map, Self& self, Wire& wire) {
    WIRE_FIELD(worker, worker);
    WIRE_FIELD(incarnation, incarnation);
    WIRE_FIELD(sequence, sequence);
    WIRE_FIELD(base, base_version);
    WIRE_FIELD(slot, slot);
    WIRE_FIELD(clock, clock);
    WIRE_FIELD(examples, examples);
    WIRE_REPEATED(batches, batches, kBatchRangesMax);
    WIRE_FIELD(rests, rests);
    WIRE_FIELD(pull, pull);
    WIRE_OPTIONAL(loss, loss);
    WIRE_FIELD(checksum, checksum);
  }
  static std::string Fault(const PushPart& part, const Message&) {
    return part.sequence == Sequence{} ? Impossible("sequence", 0) : "";
  }
};

template <>
struct WireOf<PushHeader> {
  using Message = v1::PushHeader;
  template <typename Map, typename Self, typename Wire>
  static void Fields(Map& map, Self& self, Wire& wire) {
    WIRE_REQUIRED(identity, identity);
    WIRE_FIELD(sequence, sequence);
    WIRE_FIELD(shard_map, shard_map);
    WIRE_FIELD(base, base_version);
    WIRE_FIELD(generation, generation);
    WIRE_FIELD(count, count);
    WIRE_FIELD(kind, kind);
    WIRE_FIELD(examples, examples);
    WIRE_REPEATED(batches, batches, kBatchRangesMax);
    WIRE_FIELD(label, label);
    WIRE_FIELD(pull, pull);
    WIRE_FIELD(chunk_bytes, chunk_bytes);
    WIRE_FIELD(slot, slot);
    WIRE_FIELD(clock, clock);
    WIRE_FIELD(rests, rests);
    WIRE_FIELD(leaves_out, leaves_out);
    WIRE_FIELD(holds_base, holds_base);
    WIRE_FIELD(weights_encoding, weights_encoding);
    WIRE_REPEATED(parts, parts, kFanoutMax);
    WIRE_FIELD(weighs_examples, weighs_examples);
  }
  static std::string Fault(const PushHeader& header, const Message&) {
    if (header.sequence == Sequence{} && header.parts.empty()) return Impossible("sequence", 0);
    if (std::string fault = CountFault(header.count); !fault.empty()) return fault;
    return FirstOf(ChunkBytesFault(header.chunk_bytes),
                   WeightsEncodingFault(header.weights_encoding));
  }
};

template <>
struct WireOf<PushReply> {
  using Message = v1::PushReply;
  template <typename Map, typename Self, typename Wire>
  static void Fields(Map& map, Self& self, Wire& wire) {
    WIRE_FIELD(outcome, outcome);
    WIRE_FIELD(version, version);
    WIRE_FIELD(generation, generation);
    WIRE_FIELD(staleness, staleness);
    WIRE_FIELD(durability, durability);  // Refusals have none.
    WIRE_FIELD(expected, expected_sequence);
    WIRE_FIELD(retry_after_ms, retry_after_ms);
    WIRE_FIELD(message, message);
    WIRE_FIELD(first_outcome, first_outcome);
  }
  static std::string Fault(const PushReply& reply, const Message& wire) {
    if (wire.outcome() == 0) return Impossible("outcome", 0);
    const bool tells_first = reply.outcome == PushOutcome::kDuplicate;
    const bool is_first = wire.first_outcome() == v1::APPLIED ||
                          wire.first_outcome() == v1::BUFFERED ||
                          wire.first_outcome() == v1::DROPPED_LATE;
    const bool is_possible = tells_first ? is_first : wire.first_outcome() == 0;
    return is_possible ? "" : Impossible("first_outcome", wire.first_outcome());
  }
};

template <>
struct WireOf<PullRequest> {
  using Message = v1::PullRequest;
  template <typename Map, typename Self, typename Wire>
  static void Fields(Map& map, Self& self, Wire& wire) {
    WIRE_MESSAGE(identity, identity);
    WIRE_FIELD(shard_map, shard_map);
    WIRE_FIELD(min_version, min_version);
    WIRE_FIELD(min_generation, min_generation);
    WIRE_FIELD(trains, trains);
    WIRE_FIELD(chunk_bytes, chunk_bytes);
    WIRE_FIELD(sequence, sequence);
    WIRE_FIELD(slot, slot);
    WIRE_FIELD(clock, clock);
    WIRE_FIELD(weights_encoding, weights_encoding);
    WIRE_MESSAGE(exact, exact);
    WIRE_FIELD(wants_trailer, wants_trailer);
    WIRE_OPTIONAL(held, held_version);
    WIRE_FIELD(reader, reader);
  }
  static std::string Fault(const PullRequest& request, const Message&) {
    if (request.trains) {
      if (!request.identity) return "identity (of a pull that trains): missing";
      if (request.sequence == Sequence{}) return "sequence (of a pull that trains): missing";
      if (request.exact) return "exact: a pull that trains takes the newest version";
      if (request.held) return "held_version: a pull that trains takes whole weights";
    }
    return FirstOf(ChunkBytesFault(request.chunk_bytes),
                   WeightsEncodingFault(request.weights_encoding));
  }
};

template <>
struct WireOf<RoundWork> {
  using Message = v1::RoundWork;
  template <typename Map, typename Self, typename Wire>
  static void Fields(Map& map, Self& self, Wire& wire) {
    WIRE_FIELD(kind, kind);
    if (wire.kind() == v1::RoundWork::COMPUTE) WIRE_REQUIRED(batches, batches);
  }
  static std::string Fault(const RoundWork&, const Message& wire) {
    return wire.kind() == 0 ? Impossible("kind", 0) : "";
  }
};

template <>
struct WireOf<PartAnswer> {
  using Message = v1::PartAnswer;
  template <typename Map, typename Self, typename Wire>
  static void Fields(Map& map, Self& self, Wire& wire) {
    WIRE_MESSAGE(work, work);
    WIRE_FIELD(clock, clock);
  }
};

template <>
struct WireOf<WeightsHeader> {
  using Message = v1::WeightsHeader;
  template <typename Map, typename Self, typename Wire>
  static void Fields(Map& map, Self& self, Wire& wire) {
    WIRE_FIELD(version, version);
    WIRE_FIELD(generation, generation);
    WIRE_FIELD(count, count);
    WIRE_MESSAGE(work, work);
    WIRE_FIELD(unchanged, unchanged);
    WIRE_FIELD(clock, clock);
    WIRE_FIELD(examples, examples);
    WIRE_FIELD(stage, stage);
    WIRE_MESSAGE(stamp, stamp);
    WIRE_FIELD(label, label);
    WIRE_REPEATED(parts, parts, kFanoutMax);
  }
  static std::string Fault(const WeightsHeader& header, const Message&) {
    return CountFault(header.count);
  }
};

template <>
struct WireOf<InitializeHeader> {
  using Message = v1::InitializeHeader;
  template <typename Map, typename Self, typename Wire>
  static void Fields(Map& map, Self& self, Wire& wire) {
    WIRE_REQUIRED(identity, identity);
    WIRE_FIELD(grant, grant);
    WIRE_FIELD(shard_map, shard_map);
    WIRE_FIELD(count, count);
  }
  static std::string Fault(const InitializeHeader& header, const Message&) {
    return CountFault(header.count);
  }
};

namespace {

template <typename T>
typename WireOf<T>::Message Written(const T& value) {
  typename WireOf<T>::Message message;
  ToMessage map;
  WireOf<T>::Fields(map, value, message);
  return message;
}

/// `path` is that of the message, such as "header.".
template <typename T>
absl::StatusOr<T> Read(const char* path, const typename WireOf<T>::Message& wire) {
  T value;
  FromMessage map;
  map.Read(value, wire);
  if (!map.fault().empty()) return absl::InvalidArgumentError(path + map.fault());
  return value;
}

}  // namespace

v1::Encoding ToWire(Encoding encoding) { return static_cast<v1::Encoding>(encoding); }
v1::Identity ToWire(const Identity& identity) { return Written(identity); }
v1::PushHeader ToWire(const PushHeader& header) { return Written(header); }
v1::PushReply ToWire(const PushReply& reply) { return Written(reply); }
v1::PullRequest ToWire(const PullRequest& request) { return Written(request); }
v1::WeightsHeader ToWire(const WeightsHeader& header) { return Written(header); }
v1::InitializeHeader ToWire(const InitializeHeader& header) { return Written(header); }
v1::RoundWork ToWire(const RoundWork& work) { return Written(work); }
v1::Stamp ToWire(const Stamp& stamp) { return Written(stamp); }
v1::WeightsTrailer ToWire(const WeightsTrailer& trailer) {
  v1::WeightsTrailer wire;
  wire.set_newest_version(Value(trailer.newest));
  for (const uint64_t checksum : trailer.checksums) wire.add_checksums(checksum);
  return wire;
}

absl::StatusOr<Encoding> FromWire(std::string_view field, v1::Encoding wire) {
  if (!v1::Encoding_IsValid(wire)) {
    return absl::InvalidArgumentError(FromMessage::Unknown(field, wire));
  }
  return static_cast<Encoding>(wire);
}

Identity FromWire(const v1::Identity& wire) { return *Read<Identity>("identity.", wire); }

absl::StatusOr<PushHeader> FromWire(const v1::PushHeader& wire) {
  return Read<PushHeader>("header.", wire);
}

absl::StatusOr<PushReply> FromWire(const v1::PushReply& wire) {
  return Read<PushReply>("push.", wire);
}

absl::StatusOr<PullRequest> FromWire(const v1::PullRequest& wire) {
  return Read<PullRequest>("", wire);
}

absl::StatusOr<RoundWork> FromWire(const v1::RoundWork& wire) {
  return Read<RoundWork>("work.", wire);
}

Stamp FromWire(const v1::Stamp& wire) { return *Read<Stamp>("stamp.", wire); }
absl::StatusOr<WeightsHeader> FromWire(const v1::WeightsHeader& wire) {
  return Read<WeightsHeader>("header.", wire);
}

WeightsTrailer FromWire(const v1::WeightsTrailer& wire) {
  return {.newest = Version{wire.newest_version()},
          .checksums = {wire.checksums().begin(), wire.checksums().end()}};
}

absl::StatusOr<InitializeHeader> FromWire(const v1::InitializeHeader& wire) {
  return Read<InitializeHeader>("header.", wire);
}

}  // namespace slipstream
