#ifndef SLIPSTREAM_COMMON_PROTOCOL_SHARD_MESSAGES_H_
#define SLIPSTREAM_COMMON_PROTOCOL_SHARD_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/encoding.h"
#include "common/base/ids.h"
#include "common/base/push_kind.h"
#include "common/protocol/batch_ranges.h"

namespace slipstream {

/// The data plane's messages as plain values, without their payloads. The cores speak these;
/// common/wire alone turns them into protobuf messages (proto/shard.proto) and back.

/// Who sends something, in which run.
struct Identity {
  uint64_t run = 0;
  WorkerId worker{};
  Incarnation incarnation{};

  friend bool operator==(const Identity&, const Identity&) = default;
};

struct PushHeader {
  Identity identity;
  Sequence sequence{};
  uint64_t shard_map = 0;

  /// Version the gradient was computed from, and the shard's life in which it made that. The
  /// sequence is of the same life.
  Version base{};
  Life life{};

  /// Values of the whole push. 0 says that no gradient of `base` will come, where a shard may wait
  /// for one: it excuses the member from a round that takes one of each.
  uint64_t count = 0;

  /// The meaning of the values.
  PushKind kind = PushKind::kGradient;

  /// Examples the gradient is the mean of.
  uint32_t examples = 0;

  /// The mini-batches that the push stands for.
  BatchRanges batches;

  /// Exchange only: answer with weights too, in messages of `chunk_bytes` of fp32 values (0: the
  /// server chooses).
  bool pull = false;
  uint32_t chunk_bytes = 0;

  /// Which of the gradients that a member may have under way this is, or will not come. The
  /// weights answered are for the slot's next one.
  uint32_t slot = 0;

  /// The member's clock with this push.
  WorkerClock clock{};

  /// The member has no work at hand behind this push: nobody shall wait for its clock until it
  /// pulls or pushes again.
  bool rests = false;

  /// A push without values may say that the mini-batch named for the round is left out, as its
  /// gradient is not finite. It is not named again then.
  bool leaves_out = false;

  /// Exchange only: the sender has the values of `base`, which need not be sent if that is the
  /// version answered.
  bool holds_base = false;

  /// Exchange only: how the weights are to travel.
  Encoding weights_encoding = Encoding::kFp32;

  friend bool operator==(const PushHeader&, const PushHeader&) = default;
};

/// What became of a push; the numbers are those of proto/types.proto.
enum class PushOutcome : uint8_t {
  kApplied = 1,
  kBuffered = 2,
  kDuplicate = 3,
  kDroppedLate = 4,

  kFenced = 16,
  kOutOfSequence = 17,
  kSequenceReused = 18,
  kWrongRun = 19,
  kWrongShardMap = 20,
  kShapeMismatch = 21,
  kLengthMismatch = 22,
  kNonfinite = 23,
  kFutureVersion = 24,
  kTooStale = 25,
  kRetryLater = 26,
  kTooManyExamples = 27,
  kUnknownMember = 28,
};

constexpr bool IsRefusal(PushOutcome outcome) { return outcome >= PushOutcome::kFenced; }

/// As the wire, logs and status print it: `APPLIED`, `OUT_OF_SEQUENCE`, …
constexpr std::string_view Name(PushOutcome outcome) {
  switch (outcome) {
    case PushOutcome::kApplied:
      return "APPLIED";
    case PushOutcome::kBuffered:
      return "BUFFERED";
    case PushOutcome::kDuplicate:
      return "DUPLICATE";
    case PushOutcome::kDroppedLate:
      return "DROPPED_LATE";
    case PushOutcome::kFenced:
      return "FENCED";
    case PushOutcome::kOutOfSequence:
      return "OUT_OF_SEQUENCE";
    case PushOutcome::kSequenceReused:
      return "SEQ_REUSED";
    case PushOutcome::kWrongRun:
      return "WRONG_RUN";
    case PushOutcome::kWrongShardMap:
      return "WRONG_SHARD_MAP";
    case PushOutcome::kShapeMismatch:
      return "SHAPE_MISMATCH";
    case PushOutcome::kLengthMismatch:
      return "LENGTH_MISMATCH";
    case PushOutcome::kNonfinite:
      return "NONFINITE";
    case PushOutcome::kFutureVersion:
      return "FUTURE_VERSION";
    case PushOutcome::kTooStale:
      return "TOO_STALE";
    case PushOutcome::kRetryLater:
      return "RETRY_LATER";
    case PushOutcome::kTooManyExamples:
      return "TOO_MANY_EXAMPLES";
    case PushOutcome::kUnknownMember:
      return "UNKNOWN_MEMBER";
  }
  return "UNKNOWN";
}

enum class Durability : uint8_t { kMemory = 1, kSynced = 2 };

struct PushReply {
  PushOutcome outcome = PushOutcome::kApplied;

  /// The version the push is or will be part of; of a refusal, the shard's current one.
  Version version{};
  uint64_t staleness = 0;
  Durability durability = Durability::kMemory;

  /// Of kOutOfSequence: the sequence expected.
  Sequence expected{};

  /// Of kRetryLater: wait at least so long, in milliseconds.
  uint32_t retry_after_ms = 0;

  /// For people.
  std::string message;

  /// The life of the shard to which the version belongs.
  Life life{};

  /// The first answer to the push. Set exactly if the outcome is kDuplicate.
  std::optional<PushOutcome> first_outcome;

  friend bool operator==(const PushReply&, const PushReply&) = default;
};

/// The first answer to the push, which may be this one.
constexpr PushOutcome FirstOutcome(const PushReply& reply) {
  return reply.first_outcome.value_or(reply.outcome);
}

/// A gradient that is answered so is part of a version, or will be.
constexpr bool Counts(const PushReply& reply) {
  const PushOutcome outcome = FirstOutcome(reply);
  return outcome == PushOutcome::kApplied || outcome == PushOutcome::kBuffered;
}

struct PullRequest {
  /// Absent for readers that never push.
  std::optional<Identity> identity;

  /// 0, of such readers only: however the model was cut.
  uint64_t shard_map = 0;

  /// The answer waits until the shard has published this version. Under synchronous policies, who
  /// trains is thereby excused from an open round that starts from an older one.
  Version min_version{};

  /// True if a gradient computed from the answer will be pushed.
  bool trains = false;
  uint32_t chunk_bytes = 0;

  /// Of a pull that trains: the member's next push to this shard. After that push, it is a
  /// repetition that has come late.
  Sequence sequence{};

  /// Of a pull that trains: which of the gradients that a member may have under way will be
  /// computed from the answer.
  uint32_t slot = 0;

  /// The member's clock, with the pushes that it has begun, if the pull trains.
  WorkerClock clock{};

  /// How the weights are to travel.
  Encoding weights_encoding = Encoding::kFp32;

  friend bool operator==(const PullRequest&, const PullRequest&) = default;
};

/// What a member does in a hardsync round; handed out by shard 0 with the weights.
struct RoundWork {
  enum class Kind : uint8_t { kCompute = 1, kExcused = 2, kFinished = 3 };
  Kind kind = Kind::kCompute;

  /// The mini-batches to compute for one push.
  BatchRange batches;

  friend bool operator==(const RoundWork&, const RoundWork&) = default;
};

struct WeightsHeader {
  Version version{};

  /// Values of the whole shard.
  uint64_t count = 0;
  std::optional<RoundWork> work;

  /// The reader has the values of this version; none follow.
  bool unchanged = false;

  /// The life of the shard to which the version belongs.
  Life life{};

  /// The member's clock as the shard has it, if it answers a pull that trains. It is above the one
  /// that the member named where that has rested, or joined, while others went on.
  WorkerClock clock{};

  friend bool operator==(const WeightsHeader&, const WeightsHeader&) = default;
};

/// Values in the arena whose file the worker sent over the stream's local socket.
struct SharedValues {
  /// In bytes from the arena's begin on.
  uint64_t begin = 0;
  uint64_t count = 0;

  friend bool operator==(const SharedValues&, const SharedValues&) = default;
};

/// All weights of a shard in a buffer that the reader maps.
struct SharedWeights {
  uint64_t buffer = 0;
  uint64_t generation = 0;

  friend bool operator==(const SharedWeights&, const SharedWeights&) = default;
};

/// What a worker wants of shared memory, between two exchanges.
struct SharedMemoryRequest {
  enum class Step : uint8_t { kOpen = 1, kAttach = 2, kRelease = 3 };
  Step step = Step::kOpen;

  friend bool operator==(const SharedMemoryRequest&, const SharedMemoryRequest&) = default;
};

/// Answers kOpen and kAttach.
struct SharedMemoryReply {
  /// Of kOpen: where to connect to.
  std::string socket;

  /// Why there is none; empty if there is.
  std::string refusal;

  friend bool operator==(const SharedMemoryReply&, const SharedMemoryReply&) = default;
};

struct InitializeHeader {
  Identity identity;
  uint64_t grant = 0;
  uint64_t shard_map = 0;
  uint64_t count = 0;

  friend bool operator==(const InitializeHeader&, const InitializeHeader&) = default;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROTOCOL_SHARD_MESSAGES_H_
