// Valid pushes are damaged at random and sent to a shard, chunk by chunk. Each must be refused by
// the name of its damage, and leave the shard as it was, bit for bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/archive.h"
#include "common/base/philox.h"
#include "server/core/shard/shard_return.h"
#include "server/data_plane/push_framing.h"
#include "tests/server/data_plane/shard_redo_fixture.h"
#include "tests/support/specs.h"
#include "tests/support/spoil.h"

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;

constexpr size_t kCount = RecordedRun::kCount;
constexpr uint32_t kMembers = 3;

/// A push as its sender cuts it. The first chunk has the header.
struct SentPush {
  struct Chunk {
    uint64_t offset = 0;
    std::vector<float> values;
    bool has_header = false;
  };
  PushHeader header;
  std::vector<Chunk> chunks;

  Chunk& AnyChunk(RandomStream& random) {
    return chunks[random.Below(static_cast<uint32_t>(chunks.size()))];
  }
  float& AnyValue(RandomStream& random) {
    std::vector<float>& values = AnyChunk(random).values;
    return values[random.Below(static_cast<uint32_t>(values.size()))];
  }
};

struct Damage {
  std::string name;
  /// The outcomes by which it may be refused. Empty: there is no answer, as the push is not
  /// complete when its stream ends.
  std::vector<PushOutcome> outcomes;
  std::function<void(SentPush&, RandomStream&)> spoil;
};

uint32_t Some(RandomStream& random) { return 1 + random.Below(1'000); }

const std::vector<Damage>& HeaderDamages() {
  static const std::vector<Damage> damages = {
      {"other run",
       {PushOutcome::kWrongRun},
       [](SentPush& push, RandomStream& random) { push.header.identity.run += Some(random); }},
      {"other layout",
       {PushOutcome::kWrongShardMap},
       [](SentPush& push, RandomStream& random) { push.header.shard_map ^= Some(random); }},
      {"worker that is no member",
       {PushOutcome::kFenced},
       [](SentPush& push, RandomStream& random) {
         push.header.identity.worker = WorkerId{kMembers + random.Below(1'000)};
       }},
      {"older incarnation",
       {PushOutcome::kFenced},
       [](SentPush& push, RandomStream&) { push.header.identity.incarnation = Incarnation{0}; }},
      {"incarnation of a view to come",
       {PushOutcome::kRetryLater},
       [](SentPush& push, RandomStream& random) {
         push.header.identity.incarnation = Incarnation{kMembers + Some(random)};
       }},
      {"sequence zero",
       {PushOutcome::kOutOfSequence},
       [](SentPush& push, RandomStream&) { push.header.sequence = Sequence{0}; }},
      {"sequence ahead",
       {PushOutcome::kOutOfSequence},
       [](SentPush& push, RandomStream& random) {
         push.header.sequence = Sequence{Value(push.header.sequence) + Some(random)};
       }},
      {"generation to come",
       {PushOutcome::kFutureVersion},
       [](SentPush& push, RandomStream& random) {
         push.header.generation = Generation{Value(push.header.generation) + Some(random)};
       }},
      {"base version to come",
       {PushOutcome::kFutureVersion},
       [](SentPush& push, RandomStream& random) {
         push.header.base = Version{Value(push.header.base) + Some(random)};
       }},
      {"other size",
       {PushOutcome::kShapeMismatch},
       [](SentPush& push, RandomStream& random) {
         push.header.count = random.Below(2) == 0 ? random.Below(kCount) : kCount + Some(random);
       }},
      {"huge size",
       {PushOutcome::kShapeMismatch},
       [](SentPush& push, RandomStream& random) {
         push.header.count = std::numeric_limits<uint64_t>::max() - random.Below(1'000);
       }},
      {"other kind",
       {PushOutcome::kShapeMismatch},
       [](SentPush& push, RandomStream&) { push.header.kind = PushKind::kDelta; }},
      {"no examples",
       {PushOutcome::kShapeMismatch},
       [](SentPush& push, RandomStream&) { push.header.examples = 0; }},
      {"too many examples",
       {PushOutcome::kTooManyExamples},
       [](SentPush& push, RandomStream& random) { push.header.examples = 65'536 + Some(random); }},
      {"slot that no worker has",
       {PushOutcome::kShapeMismatch},
       [](SentPush& push, RandomStream& random) { push.header.slot = Some(random); }}};
  return damages;
}

const std::vector<Damage>& PayloadDamages() {
  static const std::vector<Damage> damages = {
      {"NaN",
       {PushOutcome::kNonfinite},
       [](SentPush& push, RandomStream& random) {
         push.AnyValue(random) = std::numeric_limits<float>::quiet_NaN();
       }},
      {"infinity",
       {PushOutcome::kNonfinite},
       [](SentPush& push, RandomStream& random) {
         push.AnyValue(random) = -std::numeric_limits<float>::infinity();
       }},
      {"huge value",
       {PushOutcome::kNonfinite},
       [](SentPush& push, RandomStream& random) { push.AnyValue(random) = 0x1p50f; }},
      {"values beyond the end",
       {PushOutcome::kLengthMismatch},
       [](SentPush& push, RandomStream& random) {
         push.AnyChunk(random).offset += kCount + random.Below(1'000);
       }},
      {"chunk that crosses the end",
       {PushOutcome::kLengthMismatch},
       [](SentPush& push, RandomStream& random) {
         SentPush::Chunk& chunk = push.AnyChunk(random);
         chunk.values.resize(kCount - chunk.offset + Some(random), 1.0f);
       }},
      {"chunk that comes twice",
       {PushOutcome::kLengthMismatch},
       [](SentPush& push, RandomStream&) {
         SentPush::Chunk again = push.chunks.front();
         again.has_header = false;
         push.chunks.insert(push.chunks.begin() + 1, std::move(again));
       }},
      {"header in the middle",
       {PushOutcome::kLengthMismatch},
       [](SentPush& push, RandomStream&) { push.chunks.back().has_header = true; }},
      {"no header",
       {PushOutcome::kLengthMismatch},
       [](SentPush& push, RandomStream&) { push.chunks.front().has_header = false; }},
      {"stream that ends early", {}, [](SentPush& push, RandomStream&) {
         push.chunks.pop_back();
       }}};
  return damages;
}

/// One shard, and members that push to it in turn.
class History {
 public:
  History(const ConsistencySpec& consistency, uint64_t seed) : random_(seed, 23) {
    options_.run.consistency = consistency;
    options_.run.optimizer.kind = RuleKind::kMomentum;
    options_.run.durability.level = DurabilitySpec::Level::kSynced;
    shard_ = std::make_unique<Shard>(options_);
    shard_->SetRecorder(events_);
    ServerOrders orders = RecordedRun::OrdersFor(kMembers);
    shard_->OnOrders(orders);
    EXPECT_TRUE(RecordedRun::GiveInitialWeights(orders, RandomValues(), *shard_).ok());
    DoJobs();
    ++orders.number;
    orders.phase = Phase::kTraining;
    shard_->OnOrders(orders);
    members_ = orders.view.members;
    map_ = orders.model->shard_map.fingerprint();
  }

  /// Sends a damaged push, and now and then the undamaged one, too.
  void Step() {
    const SentPush good = NextPush();
    SentPush bad = good;
    const Damage damage = AnyDamage(good.header);
    SCOPED_TRACE(damage.name);
    damage.spoil(bad, random_);
    const std::string before = State();

    const std::optional<PushReply> reply = Send(bad);

    ASSERT_EQ(reply.has_value(), !damage.outcomes.empty());
    if (reply.has_value()) {
      EXPECT_EQ(std::ranges::count(damage.outcomes, reply->outcome), 1) << Name(reply->outcome);
      EXPECT_FALSE(reply->message.empty());
    }
    ASSERT_TRUE(State() == before);
    ++seen_[damage.name];
    if (random_.Below(8) == 0) Take(good);
  }

  /// Begins a new generation, as if the shard had returned to the state that it has.
  void BeginGeneration() {
    while (shard_->machine().round().contributions() > 0 && !testing::Test::HasFatalFailure()) {
      Take(NextPush());
    }
    const ShardState& state = shard_->machine().state();
    shard_->Restore(Returned(state, Generation{Value(state.versions.generation()) + 1}));
    last_.clear();
  }

  const std::map<std::string, size_t>& seen() const { return seen_; }

 private:
  std::vector<float> RandomValues() {
    std::vector<float> values(kCount);
    for (float& value : values) value = random_.Uniform(-1, 1);
    return values;
  }

  Damage AnyDamage(const PushHeader& header) {
    const uint32_t die = random_.Below(10);
    const auto last = last_.find(header.identity.worker);
    if (die == 0 && last != last_.end()) return UsedSequence(last->second);
    if (die == 1 && header.generation > Generation{}) return EarlierGeneration();
    const std::vector<Damage>& damages = die < 6 ? HeaderDamages() : PayloadDamages();
    return damages[random_.Below(static_cast<uint32_t>(damages.size()))];
  }

  /// The values of another push have the place of the worker's last one.
  static Damage UsedSequence(Sequence last) {
    return {"sequence used for another payload",
            {PushOutcome::kSequenceReused},
            [last](SentPush& push, RandomStream&) { push.header.sequence = last; }};
  }

  /// The sequence may be that of another push of that generation.
  static Damage EarlierGeneration() {
    return {"earlier generation",
            {PushOutcome::kTooStale, PushOutcome::kSequenceReused},
            [](SentPush& push, RandomStream& random) {
              push.header.generation =
                  Generation{random.Below(static_cast<uint32_t>(Value(push.header.generation)))};
            }};
  }

  /// Returns the next push of the member whose turn it is, cut into at least two chunks at random.
  SentPush NextPush() {
    const ShardMachine& machine = shard_->machine();
    const Member& member = members_[turn_ % kMembers];
    SentPush push;
    push.header = {.identity = RecordedRun::IdentityOf(member),
                   .sequence = machine.members().At(member.worker).expected(),
                   .shard_map = map_,
                   .base = machine.decided(),
                   .generation = machine.generation(),
                   .count = kCount,
                   .examples = 1 + random_.Below(32)};
    push.header.clock = WorkerClock{Value(push.header.sequence)};
    const std::vector<float> values = RandomValues();
    for (size_t begin = 0; begin < kCount;) {
      const size_t rest = kCount - begin;
      const size_t most = begin == 0 ? rest - 1 : rest;
      const size_t size = 1 + random_.Below(static_cast<uint32_t>(most));
      const auto from = values.begin() + static_cast<ptrdiff_t>(begin);
      push.chunks.push_back({begin, {from, from + static_cast<ptrdiff_t>(size)}, false});
      begin += size;
    }
    for (size_t i = push.chunks.size() - 1; i > 0; --i) {
      std::swap(push.chunks[i], push.chunks[random_.Below(static_cast<uint32_t>(i) + 1)]);
    }
    push.chunks.front().has_header = true;
    return push;
  }

  void Take(const SentPush& push) {
    const std::string before = State();
    const std::optional<PushReply> reply = Send(push);
    ASSERT_TRUE(reply.has_value());
    ASSERT_FALSE(IsRefusal(reply->outcome)) << Name(reply->outcome) << ": " << reply->message;
    last_[push.header.identity.worker] = push.header.sequence;
    ++turn_;
    DoJobs();
    ASSERT_FALSE(State() == before);
  }

  /// Sends the push on a stream of its own, and ends the stream. Returns the first answer, if any.
  std::optional<PushReply> Send(const SentPush& push) {
    PushFraming framing;
    std::optional<PushReply> reply;
    for (const SentPush::Chunk& sent : push.chunks) {
      PushChunk chunk = {.offset = sent.offset};
      if (sent.has_header) chunk.header = push.header;
      ReceivedValues::Buffer buffer = ReceivedValues::MakeBuffer(sent.values.size());
      std::ranges::copy(sent.values, buffer.to.begin());
      chunk.values = std::move(buffer.values);
      PushFraming::Outcome outcome =
          framing.OnChunk(std::move(chunk), std::nullopt,
                          [this](const PushHeader& header) { return shard_->BeginPush(header); });
      if (auto* complete = std::get_if<PushFraming::Complete>(&outcome)) {
        reply = shard_->FinishPush(CallId{++calls_}, complete->push).record->reply;
      } else if (auto* refused = std::get_if<PushFraming::Refused>(&outcome)) {
        reply = std::move(refused->reply);
      }
      if (reply.has_value()) break;
    }
    if (std::optional<PushAssembly> left = framing.Abandon(); left.has_value()) {
      left->CancelDraft();
      shard_->AbandonPush(*left);
    }
    return reply;
  }

  void DoJobs() {
    while (shard_->has_job()) {
      ShardJob job = shard_->TakeJob();
      job.Run();
      shard_->FinishJob(std::move(job));
    }
  }

  /// Returns everything that later updates and answers to valid pushes depend on, as bytes. Refused
  /// pushes are counted for the status, no name of a push is used twice, and the coordinator is
  /// asked about members that the shard does not know: these three are not part of it.
  std::string State() {
    ShardState state = shard_->machine().state();
    state.tally.outcomes.clear();
    Spoil(state.intake, [](auto& next_push, auto&...) { next_push = 0; });
    state.unknown_members = {};
    ArchiveWriter writer;
    writer(state, uint64_t{shard_->payloads_held()}, shard_->has_job());
    const SavedValues saved = shard_->training_state()->Save();
    writer(saved.updates, saved.scalars);
    std::string bytes = writer.Take();
    for (const auto& [name, values] : saved.arrays) {
      const std::span<const float> all = values->values();
      bytes.append(reinterpret_cast<const char*>(all.data()), all.size_bytes());
    }
    return bytes;
  }

  RandomStream random_;
  Shard::Options options_;
  EventList events_;
  std::unique_ptr<Shard> shard_;
  std::vector<Member> members_;
  uint64_t map_ = 0;
  uint64_t calls_ = 0;
  size_t turn_ = 0;                     // The number of pushes that were taken.
  std::map<WorkerId, Sequence> last_;   // The newest of each worker in this generation.
  std::map<std::string, size_t> seen_;  // The damages that were refused, by name.
};

struct Setting {
  std::string name;
  ConsistencySpec consistency;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

class BadPushProperty : public testing::TestWithParam<Setting> {};

TEST_P(BadPushProperty, IsRefusedByNameAndChangesNothing) {
  std::map<std::string, size_t> seen;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    History history(GetParam().consistency, seed);
    for (int step = 0; step < 500; ++step) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " step " + std::to_string(step));
      if (step % 100 == 99) history.BeginGeneration();
      history.Step();
      if (testing::Test::HasFailure()) return;
    }
    for (const auto& [name, count] : history.seen()) seen[name] += count;
  }
  EXPECT_EQ(seen.size(), HeaderDamages().size() + PayloadDamages().size() + 2);
  for (const auto& [name, count] : seen) EXPECT_GT(count, 20u) << name;
}

// 2,000 pushes under each policy.
INSTANTIATE_TEST_SUITE_P(Policies, BadPushProperty,
                         testing::Values(Setting{"async", {Policy::kAsync}},
                                         Setting{"softsync", Softsync(2)},
                                         Setting{"hardsync", {Policy::kHardsync}},
                                         Setting{"backup", {Policy::kBackup}},
                                         Setting{"ssp", {Policy::kSsp}}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace slipstream
