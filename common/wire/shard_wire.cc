#include "common/wire/shard_wire.h"

#include <string>
#include <utility>

#include "common/base/limits.h"
#include "common/layout/tensor_layout.h"

namespace slipstream {
namespace {

absl::Status Missing(const std::string& field) {
  return absl::InvalidArgumentError(field + ": missing");
}

absl::Status OutOfRange(const std::string& field, uint64_t value) {
  return absl::InvalidArgumentError(field + ": " + std::to_string(value) + " is not possible");
}

absl::Status CheckCount(const std::string& field, uint64_t count) {
  return count <= TensorLayout::kParametersMax ? absl::OkStatus() : OutOfRange(field, count);
}

absl::Status CheckChunkBytes(const std::string& field, uint32_t bytes) {
  const bool possible = bytes == 0 || (bytes >= kChunkBytesMin && bytes <= kChunkBytesMax &&
                                       bytes % sizeof(float) == 0);
  return possible ? absl::OkStatus() : OutOfRange(field, bytes);
}

absl::Status CheckClock(const std::string& field, uint64_t clock) {
  return clock <= Value(kWorkerClockMax) ? absl::OkStatus() : OutOfRange(field, clock);
}

/// Bounds mini-batch numbers so that sums of them cannot overflow.
constexpr uint64_t kBatchMax = uint64_t{1} << 56;

absl::StatusOr<BatchRange> FromWire(const std::string& field, const v1::BatchRange& wire) {
  if (wire.count() == 0 || wire.count() > kBatchMax) {
    return OutOfRange(field + ".count", wire.count());
  }
  if (wire.first() > kBatchMax) return OutOfRange(field + ".first", wire.first());
  return BatchRange{wire.first(), wire.count()};
}

v1::BatchRange ToWire(const BatchRange& range) {
  v1::BatchRange wire;
  wire.set_first(range.first);
  wire.set_count(range.count);
  return wire;
}

using BatchesOfWire = google::protobuf::RepeatedPtrField<v1::BatchRange>;

absl::StatusOr<BatchRanges> FromWire(const std::string& field, const BatchesOfWire& wire) {
  if (static_cast<size_t>(wire.size()) > kBatchRangesMax) {
    return absl::InvalidArgumentError(field + ": " + std::to_string(wire.size()) +
                                      " ranges, more than " + std::to_string(kBatchRangesMax));
  }
  BatchRanges batches;
  for (const v1::BatchRange& of_wire : wire) {
    const absl::StatusOr<BatchRange> range = FromWire(field, of_wire);
    if (!range.ok()) return range.status();
    batches.push_back(*range);
  }
  return batches;
}

v1::PushPart ToWire(const PushPart& part) {
  v1::PushPart wire;
  wire.set_worker(Value(part.worker));
  wire.set_incarnation(Value(part.incarnation));
  wire.set_sequence(Value(part.sequence));
  wire.set_base_version(Value(part.base));
  wire.set_slot(part.slot);
  wire.set_clock(Value(part.clock));
  wire.set_examples(part.examples);
  for (const BatchRange& range : part.batches) *wire.add_batches() = ToWire(range);
  wire.set_rests(part.rests);
  wire.set_pull(part.pull);
  if (part.loss) wire.set_loss(*part.loss);
  wire.set_checksum(part.checksum);
  return wire;
}

absl::StatusOr<PushPart> FromWire(const v1::PushPart& wire) {
  if (wire.sequence() == 0) return OutOfRange("header.parts.sequence", 0);
  if (absl::Status s = CheckClock("header.parts.clock", wire.clock()); !s.ok()) return s;
  absl::StatusOr<BatchRanges> batches = FromWire("header.parts.batches", wire.batches());
  if (!batches.ok()) return batches.status();
  PushPart part = {.worker = WorkerId{wire.worker()},
                   .incarnation = Incarnation{wire.incarnation()},
                   .sequence = Sequence{wire.sequence()},
                   .base = Version{wire.base_version()},
                   .slot = wire.slot(),
                   .clock = WorkerClock{wire.clock()},
                   .examples = wire.examples(),
                   .batches = *std::move(batches),
                   .rests = wire.rests(),
                   .pull = wire.pull(),
                   .loss = std::nullopt,
                   .checksum = wire.checksum()};
  if (wire.has_loss()) part.loss = wire.loss();
  return part;
}

}  // namespace

v1::Encoding ToWire(Encoding encoding) { return static_cast<v1::Encoding>(encoding); }

v1::Identity ToWire(const Identity& identity) {
  v1::Identity wire;
  wire.set_run(identity.run);
  wire.set_worker(Value(identity.worker));
  wire.set_incarnation(Value(identity.incarnation));
  return wire;
}

v1::Stamp ToWire(const Stamp& stamp) {
  v1::Stamp wire;
  wire.set_publisher(Value(stamp.publisher));
  wire.set_number(stamp.number);
  return wire;
}

v1::PushHeader ToWire(const PushHeader& header) {
  v1::PushHeader wire;
  *wire.mutable_identity() = ToWire(header.identity);
  wire.set_sequence(Value(header.sequence));
  wire.set_shard_map(header.shard_map);
  wire.set_base_version(Value(header.base));
  wire.set_generation(Value(header.generation));
  wire.set_count(header.count);
  wire.set_examples(header.examples);
  wire.set_kind(static_cast<v1::PushKind>(header.kind));
  wire.set_label(header.label);
  for (const BatchRange& range : header.batches) *wire.add_batches() = ToWire(range);
  wire.set_pull(header.pull);
  wire.set_chunk_bytes(header.chunk_bytes);
  wire.set_slot(header.slot);
  wire.set_clock(Value(header.clock));
  wire.set_rests(header.rests);
  wire.set_leaves_out(header.leaves_out);
  wire.set_holds_base(header.holds_base);
  wire.set_weights_encoding(ToWire(header.weights_encoding));
  for (const PushPart& part : header.parts) *wire.add_parts() = ToWire(part);
  wire.set_weighs_examples(header.weighs_examples);
  return wire;
}

v1::PushReply ToWire(const PushReply& reply) {
  v1::PushReply wire;
  wire.set_outcome(static_cast<v1::PushOutcome>(reply.outcome));
  wire.set_version(Value(reply.version));
  wire.set_generation(Value(reply.generation));
  wire.set_staleness(reply.staleness);
  wire.set_durability(static_cast<v1::Durability>(reply.durability));
  wire.set_expected_sequence(Value(reply.expected));
  wire.set_retry_after_ms(reply.retry_after_ms);
  wire.set_message(reply.message);
  if (reply.first_outcome.has_value()) {
    wire.set_first_outcome(static_cast<v1::PushOutcome>(*reply.first_outcome));
  }
  return wire;
}

v1::PullRequest ToWire(const PullRequest& request) {
  v1::PullRequest wire;
  if (request.identity) *wire.mutable_identity() = ToWire(*request.identity);
  wire.set_shard_map(request.shard_map);
  wire.set_min_version(Value(request.min_version));
  wire.set_min_generation(Value(request.min_generation));
  wire.set_trains(request.trains);
  wire.set_chunk_bytes(request.chunk_bytes);
  wire.set_sequence(Value(request.sequence));
  wire.set_slot(request.slot);
  wire.set_clock(Value(request.clock));
  wire.set_weights_encoding(ToWire(request.weights_encoding));
  if (request.exact) *wire.mutable_exact() = ToWire(*request.exact);
  wire.set_wants_trailer(request.wants_trailer);
  if (request.held) wire.set_held_version(Value(*request.held));
  wire.set_reader(request.reader);
  return wire;
}

v1::RoundWork ToWire(const RoundWork& work) {
  v1::RoundWork wire;
  wire.set_kind(static_cast<v1::RoundWork::Kind>(work.kind));
  if (work.kind == RoundWork::Kind::kCompute) *wire.mutable_batches() = ToWire(work.batches);
  return wire;
}

v1::WeightsHeader ToWire(const WeightsHeader& header) {
  v1::WeightsHeader wire;
  wire.set_version(Value(header.version));
  wire.set_generation(Value(header.generation));
  wire.set_count(header.count);
  if (header.work) *wire.mutable_work() = ToWire(*header.work);
  wire.set_unchanged(header.unchanged);
  wire.set_clock(Value(header.clock));
  wire.set_examples(header.examples);
  wire.set_stage(header.stage);
  if (header.stamp) *wire.mutable_stamp() = ToWire(*header.stamp);
  wire.set_label(header.label);
  for (const PartAnswer& part : header.parts) {
    v1::PartAnswer& of_wire = *wire.add_parts();
    if (part.work) *of_wire.mutable_work() = ToWire(*part.work);
    of_wire.set_clock(Value(part.clock));
  }
  return wire;
}

v1::WeightsTrailer ToWire(const WeightsTrailer& trailer) {
  v1::WeightsTrailer wire;
  wire.set_newest_version(Value(trailer.newest));
  for (const uint64_t checksum : trailer.checksums) wire.add_checksums(checksum);
  return wire;
}

v1::InitializeHeader ToWire(const InitializeHeader& header) {
  v1::InitializeHeader wire;
  *wire.mutable_identity() = ToWire(header.identity);
  wire.set_grant(header.grant);
  wire.set_shard_map(header.shard_map);
  wire.set_count(header.count);
  return wire;
}

absl::StatusOr<Encoding> FromWire(std::string_view field, v1::Encoding wire) {
  if (!v1::Encoding_IsValid(wire)) {
    return absl::InvalidArgumentError(std::string(field) + ": " + std::to_string(wire) +
                                      " is no encoding that is known here");
  }
  return static_cast<Encoding>(wire);
}

/// Does the same for weights, which not all encodings carry.
absl::StatusOr<Encoding> WeightsEncoding(std::string_view field, v1::Encoding wire) {
  const absl::StatusOr<Encoding> encoding = FromWire(field, wire);
  if (!encoding.ok() || RowOf(*encoding).carries_weights) return encoding;
  return absl::InvalidArgumentError(std::string(field) + ": weights do not travel as " +
                                    std::string(RowOf(*encoding).name));
}

Identity FromWire(const v1::Identity& wire) {
  return {wire.run(), WorkerId{wire.worker()}, Incarnation{wire.incarnation()}};
}

Stamp FromWire(const v1::Stamp& wire) {
  return {.publisher = Incarnation{wire.publisher()}, .number = wire.number()};
}

absl::StatusOr<PushHeader> FromWire(const v1::PushHeader& wire) {
  if (!wire.has_identity()) return Missing("header.identity");
  const bool is_of_worker = wire.parts().empty();
  if (wire.sequence() == 0 && is_of_worker) return OutOfRange("header.sequence", 0);
  if (absl::Status s = CheckCount("header.count", wire.count()); !s.ok()) return s;
  if (absl::Status s = CheckClock("header.clock", wire.clock()); !s.ok()) return s;
  if (absl::Status s = CheckChunkBytes("header.chunk_bytes", wire.chunk_bytes()); !s.ok()) return s;
  const absl::StatusOr<Encoding> encoding =
      WeightsEncoding("header.weights_encoding", wire.weights_encoding());
  if (!encoding.ok()) return encoding.status();
  PushHeader header;
  header.identity = FromWire(wire.identity());
  header.sequence = Sequence{wire.sequence()};
  header.shard_map = wire.shard_map();
  header.base = Version{wire.base_version()};
  header.generation = Generation{wire.generation()};
  header.count = wire.count();
  if (!v1::PushKind_IsValid(wire.kind())) {
    return OutOfRange("header.kind", static_cast<uint64_t>(wire.kind()));
  }
  header.kind = static_cast<PushKind>(wire.kind());
  header.examples = wire.examples();
  header.label = wire.label();
  absl::StatusOr<BatchRanges> batches = FromWire("header.batches", wire.batches());
  if (!batches.ok()) return batches.status();
  header.batches = *std::move(batches);
  header.pull = wire.pull();
  header.chunk_bytes = wire.chunk_bytes();
  header.slot = wire.slot();
  header.clock = WorkerClock{wire.clock()};
  header.rests = wire.rests();
  header.leaves_out = wire.leaves_out();
  header.holds_base = wire.holds_base();
  header.weights_encoding = *encoding;
  if (static_cast<size_t>(wire.parts_size()) > kFanoutMax) {
    return absl::InvalidArgumentError("header.parts: " + std::to_string(wire.parts_size()) +
                                      ", more than " + std::to_string(kFanoutMax));
  }
  for (const v1::PushPart& of_wire : wire.parts()) {
    absl::StatusOr<PushPart> part = FromWire(of_wire);
    if (!part.ok()) return part.status();
    header.parts.push_back(*std::move(part));
  }
  header.weighs_examples = wire.weighs_examples();
  return header;
}

absl::StatusOr<PushReply> FromWire(const v1::PushReply& wire) {
  if (wire.outcome() == 0 || !v1::PushOutcome_IsValid(wire.outcome())) {
    return OutOfRange("push.outcome", static_cast<uint64_t>(wire.outcome()));
  }
  const bool tells_first = wire.outcome() == v1::DUPLICATE;
  const bool is_first = wire.first_outcome() == v1::APPLIED ||
                        wire.first_outcome() == v1::BUFFERED ||
                        wire.first_outcome() == v1::DROPPED_LATE;
  if (tells_first ? !is_first : wire.first_outcome() != 0) {
    return OutOfRange("push.first_outcome", static_cast<uint64_t>(wire.first_outcome()));
  }
  if (!v1::Durability_IsValid(wire.durability())) {
    return OutOfRange("push.durability", static_cast<uint64_t>(wire.durability()));
  }
  PushReply reply;
  reply.outcome = static_cast<PushOutcome>(wire.outcome());
  reply.version = Version{wire.version()};
  reply.generation = Generation{wire.generation()};
  reply.staleness = wire.staleness();
  // Refusals have no durability.
  if (wire.durability() != 0) reply.durability = static_cast<Durability>(wire.durability());
  reply.expected = Sequence{wire.expected_sequence()};
  reply.retry_after_ms = wire.retry_after_ms();
  reply.message = wire.message();
  if (wire.first_outcome() != 0) {
    reply.first_outcome = static_cast<PushOutcome>(wire.first_outcome());
  }
  return reply;
}

absl::StatusOr<PullRequest> FromWire(const v1::PullRequest& wire) {
  if (absl::Status s = CheckChunkBytes("chunk_bytes", wire.chunk_bytes()); !s.ok()) return s;
  if (absl::Status s = CheckClock("clock", wire.clock()); !s.ok()) return s;
  if (wire.trains() && !wire.has_identity()) return Missing("identity (of a pull that trains)");
  if (wire.trains() && wire.sequence() == 0) return Missing("sequence (of a pull that trains)");
  const absl::StatusOr<Encoding> encoding =
      WeightsEncoding("weights_encoding", wire.weights_encoding());
  if (!encoding.ok()) return encoding.status();
  PullRequest request;
  if (wire.has_identity()) request.identity = FromWire(wire.identity());
  request.shard_map = wire.shard_map();
  request.min_version = Version{wire.min_version()};
  request.min_generation = Generation{wire.min_generation()};
  request.trains = wire.trains();
  request.chunk_bytes = wire.chunk_bytes();
  request.sequence = Sequence{wire.sequence()};
  request.slot = wire.slot();
  request.clock = WorkerClock{wire.clock()};
  request.weights_encoding = *encoding;
  if (wire.has_exact() && wire.trains()) {
    return absl::InvalidArgumentError("exact: a pull that trains takes the newest version");
  }
  if (wire.has_exact()) request.exact = FromWire(wire.exact());
  request.wants_trailer = wire.wants_trailer();
  if (wire.has_held_version() && wire.trains()) {
    return absl::InvalidArgumentError("held_version: a pull that trains takes whole weights");
  }
  if (wire.has_held_version()) request.held = Version{wire.held_version()};
  request.reader = wire.reader();
  return request;
}

absl::StatusOr<RoundWork> FromWire(const v1::RoundWork& wire) {
  if (wire.kind() == 0 || !v1::RoundWork::Kind_IsValid(wire.kind())) {
    return OutOfRange("work.kind", static_cast<uint64_t>(wire.kind()));
  }
  RoundWork work = {.kind = static_cast<RoundWork::Kind>(wire.kind())};
  if (work.kind != RoundWork::Kind::kCompute) return work;
  const absl::StatusOr<BatchRange> batches = FromWire("work.batches", wire.batches());
  if (!batches.ok()) return batches.status();
  work.batches = *batches;
  return work;
}

absl::StatusOr<WeightsHeader> FromWire(const v1::WeightsHeader& wire) {
  if (absl::Status s = CheckCount("header.count", wire.count()); !s.ok()) return s;
  if (absl::Status s = CheckClock("header.clock", wire.clock()); !s.ok()) return s;
  WeightsHeader header = {.version = Version{wire.version()},
                          .count = wire.count(),
                          .work = std::nullopt,
                          .unchanged = wire.unchanged(),
                          .generation = Generation{wire.generation()},
                          .clock = WorkerClock{wire.clock()},
                          .examples = wire.examples(),
                          .stage = wire.stage(),
                          .stamp = std::nullopt,
                          .label = wire.label()};
  if (wire.has_stamp()) header.stamp = FromWire(wire.stamp());
  if (wire.has_work()) {
    const absl::StatusOr<RoundWork> work = FromWire(wire.work());
    if (!work.ok()) return work.status();
    header.work = *work;
  }
  for (const v1::PartAnswer& of_wire : wire.parts()) {
    if (absl::Status s = CheckClock("header.parts.clock", of_wire.clock()); !s.ok()) return s;
    PartAnswer part = {.work = std::nullopt, .clock = WorkerClock{of_wire.clock()}};
    if (of_wire.has_work()) {
      const absl::StatusOr<RoundWork> work = FromWire(of_wire.work());
      if (!work.ok()) return work.status();
      part.work = *work;
    }
    header.parts.push_back(part);
  }
  return header;
}

WeightsTrailer FromWire(const v1::WeightsTrailer& wire) {
  return {.newest = Version{wire.newest_version()},
          .checksums = {wire.checksums().begin(), wire.checksums().end()}};
}

absl::StatusOr<InitializeHeader> FromWire(const v1::InitializeHeader& wire) {
  if (!wire.has_identity()) return Missing("header.identity");
  if (absl::Status s = CheckCount("header.count", wire.count()); !s.ok()) return s;
  return InitializeHeader{FromWire(wire.identity()), wire.grant(), wire.shard_map(), wire.count()};
}

}  // namespace slipstream
