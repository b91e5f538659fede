#ifndef SLIPSTREAM_COMMON_PROTOCOL_SHARD_MESSAGES_H_
#define SLIPSTREAM_COMMON_PROTOCOL_SHARD_MESSAGES_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/encoding.h"
#include "common/base/ids.h"
#include "common/base/push_kind.h"
#include "common/protocol/batch_ranges.h"
#include "common/protocol/tensor_set.h"

namespace slipstream {

/// The data plane's messages as plain values, without their payloads. The cores speak these;
/// common/wire alone turns them into protobuf messages (proto/shard.proto) and back.

/// The sender of a message, and its run.
struct Identity {
  uint64_t run = 0;
  WorkerId worker{};
  Incarnation incarnation{};

  friend bool operator==(const Identity&, const Identity&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.run, self.worker, self.incarnation);
  }
};

/// Names one state of the whole model: the versions of all shards that have the same stamp were
/// made of one publication, or of the same round. Stamps of a run rise.
struct Stamp {
  /// The publisher's incarnation and its clock; under policies that keep workers in step, 0 and the
  /// version.
  Incarnation publisher{};
  uint64_t number = 0;

  friend auto operator<=>(const Stamp&, const Stamp&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.publisher, self.number);
  }
};

/// The facts about a push that its sender knows only when it has computed the whole of it.
struct PushTrailer {
  /// The loss of the push's last mini-batch. Absent if the sender does not report it. It is only
  /// logged.
  std::optional<float> loss;

  /// The factor that clips the values to a norm: the shard multiplies them by it. In (0, 1].
  float clip = 1;

  /// The tensors that the push has no gradient for, as forward did not use them: their values are
  /// 0. The rule leaves a tensor and its state alone if no push of the round has a gradient for it.
  TensorSet absent;

  friend bool operator==(const PushTrailer&, const PushTrailer&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.loss, self.clip, self.absent);
  }
};

/// One worker's push, as a part of an aggregator's push. The fields are those of PushHeader; its
/// clip is 1, as the aggregator has clipped the values.
struct PushPart {
  WorkerId worker{};
  Incarnation incarnation{};
  Sequence sequence{};
  Version base{};
  uint32_t slot = 0;
  WorkerClock clock{};
  uint32_t examples = 0;
  BatchRanges batches;
  bool rests = false;
  bool pull = false;
  std::optional<float> loss;

  /// The checksum of the push as its worker sent it, see PushFacts.
  uint64_t checksum = 0;

  friend bool operator==(const PushPart&, const PushPart&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.worker, self.incarnation, self.sequence, self.base, self.slot, self.clock,
            self.examples, self.batches, self.rests, self.pull, self.loss, self.checksum);
  }
};

struct PushHeader {
  Identity identity;
  Sequence sequence{};
  uint64_t shard_map = 0;

  /// The version that the gradient was computed from, and the generation of the shard that made it.
  /// The sequence belongs to the same generation.
  Version base{};
  Generation generation{};

  /// The number of values of the whole push. 0 says that no gradient of `base` will come, though a
  /// shard may wait for one: it excuses the member from a round that takes one from each member.
  uint64_t count = 0;

  /// The meaning of the values.
  PushKind kind = PushKind::kGradient;

  /// The number of examples that the gradient is the mean of.
  uint32_t examples = 0;

  /// The mini-batches that the push stands for.
  BatchRanges batches;

  /// The sender's own number for whole weights, for readers.
  uint64_t label = 0;

  /// Travels with the last chunk, because it is not known earlier.
  PushTrailer trailer;

  /// Exchange only: set if the answer carries weights, too, in messages of `chunk_bytes` of fp32
  /// values (0: the server chooses).
  bool pull = false;
  uint32_t chunk_bytes = 0;

  /// Which of the gradients that a member may have under way this is, or will not come. The
  /// answered weights are for the slot's next gradient.
  uint32_t slot = 0;

  /// The member's clock with this push.
  WorkerClock clock{};

  /// Set if the member has no work at hand after this push: nobody waits for its clock until it
  /// pulls or pushes again.
  bool rests = false;

  /// Set in a push without values if the mini-batch named for the round is left out, because its
  /// gradient is not finite. It is not named again.
  bool leaves_out = false;

  /// Exchange only: set if the sender has the values of `base`. They need not be sent if the answer
  /// is of that version.
  bool holds_base = false;

  /// Exchange only: the encoding of the answered weights.
  Encoding weights_encoding = Encoding::kFp32;

  /// The pushes that this one combines, each of another worker, in order of worker ids; empty for
  /// the push of one worker. See composite_push.h.
  std::vector<PushPart> parts = {};

  /// Set if the values are the mean of the parts weighed by their numbers of examples, rather than
  /// equally.
  bool weighs_examples = false;

  friend bool operator==(const PushHeader&, const PushHeader&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.identity, self.sequence, self.shard_map, self.base, self.generation, self.count,
            self.kind, self.examples, self.batches, self.label, self.trailer, self.pull,
            self.chunk_bytes, self.slot, self.clock, self.rests, self.leaves_out, self.holds_base,
            self.weights_encoding, self.parts, self.weighs_examples);
  }
};

/// The outcome of a push; the numbers are those of proto/types.proto.
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
  kNotCombined = 29,
};

constexpr bool IsRefusal(PushOutcome outcome) { return outcome >= PushOutcome::kFenced; }

/// Returns the name that the wire, logs and status print: `APPLIED`, `OUT_OF_SEQUENCE`, …
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
    case PushOutcome::kNotCombined:
      return "NOT_COMBINED";
  }
  return "UNKNOWN";
}

enum class Durability : uint8_t { kMemory = 1, kSynced = 2, kCheckpoint = 3 };

struct PushReply {
  PushOutcome outcome = PushOutcome::kApplied;

  /// The version that the push is or will be part of; in a refusal, the shard's current version.
  Version version{};
  uint64_t staleness = 0;
  Durability durability = Durability::kMemory;

  /// Set if the outcome is kOutOfSequence: the sequence that the shard expects.
  Sequence expected{};

  /// Set if the outcome is kRetryLater or kUnknownMember: how long the client waits at least before
  /// it retries, in ms.
  uint32_t retry_after_ms = 0;

  /// Text for people.
  std::string message;

  /// The generation of the shard to which the version belongs.
  Generation generation{};

  /// The first answer to the push. Set exactly if the outcome is kDuplicate.
  std::optional<PushOutcome> first_outcome;

  friend bool operator==(const PushReply&, const PushReply&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.outcome, self.version, self.staleness, self.durability, self.expected,
            self.retry_after_ms, self.message, self.generation, self.first_outcome);
  }
};

/// Returns the first answer to the push, which may be this one.
constexpr PushOutcome FirstOutcome(const PushReply& reply) {
  return reply.first_outcome.value_or(reply.outcome);
}

/// Returns whether the gradient is part of a version, or will be.
constexpr bool Counts(const PushReply& reply) {
  const PushOutcome outcome = FirstOutcome(reply);
  return outcome == PushOutcome::kApplied || outcome == PushOutcome::kBuffered;
}

struct PullRequest {
  /// Absent for readers that never push.
  std::optional<Identity> identity;

  /// 0 is for such readers alone, and means: however the model was cut.
  uint64_t shard_map = 0;

  /// The answer waits until the shard has published this version. Under synchronous policies, a
  /// pull that trains thereby excuses its member from an open round that starts from an older
  /// version.
  Version min_version{};

  /// The generation of the shard to which min_version, sequence and held belong. In another
  /// generation they mean nothing: the pull is answered at once with whole weights, which may be
  /// trained on if the member has pushed nothing yet in that generation. Only where shards are in
  /// step does a shard that is in an earlier generation refuse, as it is to return first.
  Generation min_generation{};

  /// True if a gradient computed from the answer will be pushed.
  bool trains = false;
  uint32_t chunk_bytes = 0;

  /// Set in a pull that trains: the sequence of the member's next push to this shard. A pull that
  /// comes after that push is a late repetition.
  Sequence sequence{};

  /// Set in a pull that trains: which of the gradients that a member may have under way will be
  /// computed from the answer.
  uint32_t slot = 0;

  /// Set in a pull that trains: the member's clock, which counts the pushes that it has begun.
  WorkerClock clock{};

  /// The encoding of the answered weights.
  Encoding weights_encoding = Encoding::kFp32;

  /// The state of the model that is asked for, in a pull that does not train. The answer waits
  /// until the shard has published it, and is a refusal (LAGGED) once the shard has gone further
  /// and does not keep it.
  std::optional<Stamp> exact;

  /// Whether the last message is to have the trailer of the weights.
  bool wants_trailer = false;

  /// In a pull that does not train: the version whose values the reader has.
  std::optional<Version> held;

  /// The number under which the reader reports to the coordinator, if workers may have to wait for
  /// it; else 0.
  uint64_t reader = 0;

  friend bool operator==(const PullRequest&, const PullRequest&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.identity, self.shard_map, self.min_version, self.min_generation, self.trains,
            self.chunk_bytes, self.sequence, self.slot, self.clock, self.weights_encoding,
            self.exact, self.wants_trailer, self.held, self.reader);
  }
};

/// The changes in some of a shard's values since a version that the reader holds.
struct ValueChanges {
  /// They are of the values [offset, offset + count) of the shard.
  uint64_t offset = 0;
  uint64_t count = 0;
  std::string blocks;  // See common/kernels/value_changes.h.

  friend bool operator==(const ValueChanges&, const ValueChanges&) = default;
};

/// The facts that come behind pulled weights.
struct WeightsTrailer {
  /// The newest version that was published when the last values were sent.
  Version newest{};

  /// XXH3-64 of each tensor's values, or of the part that the shard has, as fp32: in the layout's
  /// order.
  std::vector<uint64_t> checksums;

  friend bool operator==(const WeightsTrailer&, const WeightsTrailer&) = default;
};

/// The work of a member in a hardsync round; shard 0 hands it out with the weights.
struct RoundWork {
  enum class Kind : uint8_t { kCompute = 1, kExcused = 2, kFinished = 3 };
  Kind kind = Kind::kCompute;

  /// The mini-batches to compute for one push.
  BatchRange batches;

  friend bool operator==(const RoundWork&, const RoundWork&) = default;
};

/// The words of an answer to the worker of one part of a push.
struct PartAnswer {
  std::optional<RoundWork> work;  // As in WeightsHeader.
  WorkerClock clock{};

  friend bool operator==(const PartAnswer&, const PartAnswer&) = default;
};

struct WeightsHeader {
  Version version{};

  /// The number of values of the whole shard.
  uint64_t count = 0;
  std::optional<RoundWork> work;

  /// Set if the reader has the values of this version; none follow.
  bool unchanged = false;

  /// The generation of the shard to which the version belongs.
  Generation generation{};

  /// In an answer to train on: the member's clock as the shard has it. It is above the
  /// clock that the member named if others went on while the member rested, or before it joined.
  WorkerClock clock{};

  /// The number of examples whose gradients are part of the version. Set only in the answer to a
  /// pull that does not train.
  uint64_t examples = 0;

  /// The place of the policy in force in the run's sequence of policies.
  uint32_t stage = 0;

  // In the answer to a pull that does not train. The stamp of the version; absent where the shards'
  // versions do not belong together. The publisher's label of it; 0 if nothing was published.
  std::optional<Stamp> stamp;
  uint64_t label = 0;

  /// The kept version that the reader has the values of; not on the wire.
  std::optional<Version> base;

  /// In the answer to a push with parts: one for each of them, in the same order.
  std::vector<PartAnswer> parts = {};

  friend bool operator==(const WeightsHeader&, const WeightsHeader&) = default;
};

/// Values in the arena whose file the worker sent over the stream's local socket.
struct SharedValues {
  /// Where the values begin, in bytes from the arena's begin.
  uint64_t begin = 0;
  uint64_t count = 0;

  friend bool operator==(const SharedValues&, const SharedValues&) = default;
};

/// All weights of a shard in a buffer that the reader maps.
struct SharedWeights {
  uint64_t buffer = 0;
  uint64_t filling = 0;

  friend bool operator==(const SharedWeights&, const SharedWeights&) = default;
};

/// A worker's request about shared memory, between two exchanges.
struct SharedMemoryRequest {
  enum class Step : uint8_t { kOpen = 1, kAttach = 2, kRelease = 3 };
  Step step = Step::kOpen;

  friend bool operator==(const SharedMemoryRequest&, const SharedMemoryRequest&) = default;
};

/// The answer to kOpen and kAttach.
struct SharedMemoryReply {
  /// In the answer to kOpen: the socket to connect to.
  std::string socket;

  /// Why memory cannot be shared; empty if it can.
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

/// The answer to a push. It has no weights if none were asked for or the push was refused.
struct ExchangeAnswer {
  PushReply push;
  std::optional<WeightsHeader> weights;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROTOCOL_SHARD_MESSAGES_H_
