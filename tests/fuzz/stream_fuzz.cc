#include <grpcpp/support/slice.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/local/shared_arena.h"
#include "common/wire/chunk_wire.h"
#include "server/data_plane/push_framing.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_target.h"
#include "worker/client/weights_arrival.h"

namespace slipstream {
namespace {

constexpr size_t kArenaValues = size_t{1} << 16;

/// The values of which chunks are made, some of them NaN. They lie in shared memory, as a worker's
/// do.
struct Source {
  Source() {
    for (size_t i = 0; i < kArenaValues; ++i) {
      values[i] =
          i % 4096 == 4095 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(i);
    }
  }

  const SharedArena arena = SharedArena::Make(1, kArenaValues).value();
  const ForeignArena foreign = ForeignArena::Open(arena.file()).value();
  const std::span<float> values = arena.part(0);
};

const Source& TheSource() {
  static const Source source;
  return source;
}

/// One step of a stream of pushes, as the input describes it.
struct Step {
  explicit Step(FuzzInput& input) {
    const auto flags = input.Take<uint8_t>();
    has_header = (flags & 1) != 0;
    is_unread = (flags & 2) != 0;
    is_scattered = (flags & 4) != 0;
    begins = (flags >> 3) & 3;
    if (has_header) announced = (flags & 32) != 0 ? input.Take<uint64_t>() : input.Take<uint16_t>();
    offset = (flags & 64) != 0 ? input.Take<uint64_t>() : input.Take<uint16_t>();
    first = input.Take<uint16_t>();
    count = std::min<uint64_t>(input.Take<uint16_t>(), kArenaValues - first);
    if (is_unread && count == 0) count = 1;
    is_request = (flags & 128) != 0;
  }

  std::span<const float> values() const { return TheSource().values.subspan(first, count); }

  /// Returns the values in slices of three bytes if they are scattered, and otherwise in one slice.
  ReceivedValues Received() const {
    const auto bytes = std::as_bytes(values());
    const size_t piece = is_scattered && count <= 1024 ? 3 : std::max<size_t>(bytes.size(), 1);
    std::vector<grpc::Slice> slices;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      slices.emplace_back(bytes.data() + at, std::min(piece, bytes.size() - at));
    }
    Segments segments;
    for (const grpc::Slice& slice : slices) {
      segments.push_back(std::as_bytes(std::span(slice.begin(), slice.size())));
    }
    return {std::move(slices), std::move(segments)};
  }

  bool has_header = false;
  bool is_unread = false;
  bool is_scattered = false;
  bool is_request = false;
  int begins = 0;  // 0 and 3: the push is wanted; 1: it is refused; 2: its size is, too.
  uint64_t announced = 0;
  uint64_t offset = 0;
  size_t first = 0;  // Begin in the source.
  size_t count = 0;
};

enum class Expected { kNeedMore, kComplete, kRefused, kEndsStream, kBeside };

/// A naive model of a stream, value by value.
class NaiveFraming {
 public:
  Expected OnStep(const Step& step) {
    const Expected expected = Take(step);
    if (expected != Expected::kNeedMore) {
      is_assembling_ = false;
      is_discarding_ = false;
    }
    return expected;
  }

  bool is_between() const { return !is_assembling_ && !is_discarding_; }

  /// Returns whether values came for a position that the model does not keep, so that it cannot
  /// judge any more.
  bool is_unknown() const { return is_unknown_; }

  /// Compares the complete push with the values sent.
  void Check(PushAssembly push) const {
    const ShardMachine::PushFacts facts = push.Facts();
    PS_CHECK(facts.checksum == checksum_);
    PS_CHECK(facts.is_finite == is_finite_);
    PS_CHECK(facts.values_received == announced_);
    std::vector<std::byte> bytes;
    const PushPayload payload = push.TakePayload();
    for (const auto& piece : payload.pieces) {
      for (const ByteSegment& segment : piece->segments()) {
        bytes.insert(bytes.end(), segment.begin(), segment.end());
      }
    }
    const auto wanted = std::as_bytes(std::span(values_));
    PS_CHECK(std::ranges::equal(bytes, wanted));
  }

 private:
  Expected Take(const Step& step) {
    if (step.is_request) return is_between() ? Expected::kBeside : Expected::kEndsStream;
    if (step.has_header) {
      if (!is_between() || step.begins == 2) return Expected::kEndsStream;
      announced_ = step.announced;
      is_discarding_ = step.begins == 1;
      is_assembling_ = !is_discarding_;
      left_ = announced_;
      values_.assign(std::min<uint64_t>(announced_, kArenaValues), 0);
      has_come_.assign(values_.size(), false);
      pieces_ = 0;
      checksum_ = 0;
      is_finite_ = true;
    }
    if (is_between()) return Expected::kEndsStream;
    if (is_discarding_) {
      if (step.count > left_) return Expected::kEndsStream;
      left_ -= step.count;
      return left_ == 0 ? Expected::kRefused : Expected::kNeedMore;
    }
    return Place(step);
  }

  Expected Place(const Step& step) {
    if (step.count > 0) {
      const uint64_t bytes_before = (announced_ - left_) * sizeof(float);
      if (pieces_ > 64 + bytes_before / kChunkBytesMin) return Expected::kEndsStream;
      if (step.offset > announced_ || step.count > announced_ - step.offset) {
        return Expected::kEndsStream;
      }
      if (step.offset + step.count > has_come_.size()) {
        is_unknown_ = true;
        return Expected::kNeedMore;
      }
      for (size_t i = 0; i < step.count; ++i) {
        if (has_come_[step.offset + i]) return Expected::kEndsStream;
      }
      for (size_t i = 0; i < step.count; ++i) {
        has_come_[step.offset + i] = true;
        values_[step.offset + i] = step.values()[i];
      }
      Count(step);
    }
    return left_ == 0 ? Expected::kComplete : Expected::kNeedMore;
  }

  void Count(const Step& step) {
    const std::span<const float> values = step.values();
    ++pieces_;
    left_ -= step.count;
    checksum_ += XXH3_64bits_withSeed(values.data(), values.size_bytes(), step.offset);
    is_finite_ = is_finite_ && std::ranges::all_of(values, [](float value) {
                   return std::abs(value) < kGradientLimit;
                 });
  }

  bool is_assembling_ = false;
  bool is_discarding_ = false;
  bool is_unknown_ = false;
  uint64_t announced_ = 0;
  uint64_t left_ = 0;
  std::vector<float> values_;
  std::vector<bool> has_come_;
  size_t pieces_ = 0;
  uint64_t checksum_ = 0;
  bool is_finite_ = true;
};

BegunPush Begun(int begins) {
  BegunPush begun;
  if (begins != 1 && begins != 2) return begun;
  begun.refusal.emplace();
  begun.refusal->outcome = begins == 1 ? PushOutcome::kRetryLater : PushOutcome::kShapeMismatch;
  return begun;
}

Expected KindOf(const PushFraming::Outcome& outcome) {
  if (std::holds_alternative<PushFraming::NeedMore>(outcome)) return Expected::kNeedMore;
  if (std::holds_alternative<PushFraming::Complete>(outcome)) return Expected::kComplete;
  if (std::holds_alternative<PushFraming::Beside>(outcome)) return Expected::kBeside;
  const bool ends = std::get<PushFraming::Refused>(outcome).ends_stream;
  return ends ? Expected::kEndsStream : Expected::kRefused;
}

/// Returns a weight that differs for each version and position.
float WeightOf(Version version, size_t position) {
  return static_cast<float>(Value(version) * 1000 + position);
}

/// Checks that a step is told of values of one version only, each once and in order.
class StrictListener : public WeightsListener {
 public:
  explicit StrictListener(const std::vector<float>& target) : target_(target) {}

  void WeightsArrived(ParameterRange range) override {
    See(arrival_->header()->version);
    PS_CHECK(range.begin == told_ && range.end > range.begin && range.end <= target_.size());
    told_ = range.end;
  }
  void RevokeWeights(ParameterRange) override { PS_CHECK(false); }
  void AbandonWeights() override { PS_CHECK(false); }

  /// `arrival` tells this listener of values.
  void Follow(const WeightsArrival& arrival) { arrival_ = &arrival; }

  /// Checks that all values reported so far have arrived.
  void Check(Version version) {
    See(version);
    for (size_t i = 0; i < told_; ++i) PS_CHECK(target_[i] == WeightOf(version, i));
  }

 private:
  /// Values of another version replace all before.
  void See(Version version) {
    if (std::exchange(seen_, version) != version) told_ = 0;
  }

  const std::vector<float>& target_;
  size_t told_ = 0;
  const WeightsArrival* arrival_ = nullptr;
  std::optional<Version> seen_;
};

/// One message of weights, as the input describes it.
struct WeightsStep {
  explicit WeightsStep(FuzzInput& input) {
    const auto flags = input.Take<uint8_t>();
    starts_try = (flags & 1) != 0;
    is_intact = (flags & 2) == 0;
    version = Version{uint64_t{flags} >> 6};
    if ((flags & 4) != 0) {
      header.emplace();
      header->version = version;
      header->unchanged = (flags & 8) != 0;
      header->count = input.Take<uint8_t>();
    }
    offset = (flags & 16) != 0 ? input.Take<uint64_t>() : input.Take<uint8_t>();
    count = input.Take<uint8_t>();
  }

  bool starts_try = false;
  bool is_intact = true;
  Version version{};
  std::optional<WeightsHeader> header;
  uint64_t offset = 0;
  size_t count = 0;
};

}  // namespace

void FuzzPushFraming(std::string_view input) {
  constexpr int kMovesMax = 300;
  FuzzInput rest(input);
  PushFraming framing;
  NaiveFraming naive;
  for (int i = 0; i < kMovesMax && !rest.is_at_end(); ++i) {
    const Step step(rest);
    PushChunk chunk;
    chunk.offset = step.offset;
    if (step.has_header) chunk.header.emplace().count = step.announced;
    if (step.is_request) chunk.request.emplace();
    std::optional<UnreadValues> unread;
    if (step.is_unread) {
      unread = UnreadValues{&TheSource().foreign, step.first * sizeof(float), step.count};
    } else {
      chunk.values = step.Received();
    }
    const Expected expected = naive.OnStep(step);
    PushFraming::Outcome outcome = framing.OnChunk(
        std::move(chunk), unread, [&](const PushHeader&) { return Begun(step.begins); });
    if (naive.is_unknown()) return;
    PS_CHECK(KindOf(outcome) == expected);
    if (auto* complete = std::get_if<PushFraming::Complete>(&outcome)) {
      naive.Check(std::move(complete->push));
    }
    if (expected == Expected::kEndsStream) framing.Abandon();
    PS_CHECK(framing.is_between() == naive.is_between());
  }
  const std::optional<PushAssembly> left = framing.Abandon();
  if (left.has_value()) PS_CHECK(!left->is_complete() && !left->Missing().empty());
}

void FuzzWeightsArrival(std::string_view input) {
  constexpr Version kHeld{3};
  FuzzInput rest(input);
  std::vector<float> target(rest.Take<uint8_t>());
  for (size_t i = 0; i < target.size(); ++i) target[i] = WeightOf(kHeld, i);
  StrictListener listener(target);
  WeightsArrival arrival(target, 0, &listener);
  listener.Follow(arrival);
  arrival.StartFrom(Generation{}, kHeld);
  std::optional<Version> announced;
  while (!rest.is_at_end()) {
    const WeightsStep step(rest);
    if (step.starts_try) arrival.StartTry();
    if (step.header.has_value() && step.header->count == target.size()) announced = step.version;
    std::vector<float> values(step.count, -1);
    for (size_t i = 0; i < values.size() && step.is_intact; ++i) {
      values[i] = WeightOf(announced.value_or(kHeld), step.offset + i);
    }
    const bool had_header = arrival.header().has_value();
    const absl::Status taken =
        arrival.Take(step.header, step.offset, {std::as_bytes(std::span(values))},
                     [&] { return step.is_intact; });
    PS_CHECK(!had_header || arrival.header().has_value());
    if (arrival.header().has_value()) {
      announced = arrival.header()->version;
      listener.Check(*announced);
    }
    if (!taken.ok()) {
      arrival.StartTry();  // The same as a caller that tries again.
    } else if (arrival.is_complete()) {
      arrival.Finish();
      for (size_t i = 0; i < target.size(); ++i) PS_CHECK(target[i] == WeightOf(*announced, i));
      arrival.StartTry();
    }
  }
}

}  // namespace slipstream
