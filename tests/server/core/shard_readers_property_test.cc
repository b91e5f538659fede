#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "tests/server/core/published_shard.h"

// Random readers pull from a shard to which random publishers push whole weights. After each event,
// a naive model of the same rules says who must have an answer, and which.

namespace slipstream {
namespace {

/// How often a history came to what the test is about.
struct Seen {
  size_t served = 0;
  size_t refused = 0;
  size_t waited = 0;
  size_t lagged = 0;
};

ShardMachine::Options RandomOptions(RandomStream& random) {
  ShardMachine::Options options = Publishing(1 + random.Below(4));
  options.reader_pulls_max = 3 + random.Below(8);
  return options;
}

/// One random history. Every method that acts also checks what the action itself promises.
class History {
 public:
  History(uint64_t seed, Seen& seen)
      : random_(seed, 23), options_(RandomOptions(random_)), shard_(options_), seen_(seen) {
    share_of_ends_ = 5 + random_.Below(30);
  }

  void Step() {
    const uint32_t die = random_.Below(100);
    if (die < 20) {
      Push();
    } else if (die < 40) {
      Publish();
    } else if (die < 60) {
      Pull();
    } else if (die < 60 + share_of_ends_) {
      EndPull();
    } else if (die < 97) {
      Cancel();
    } else {
      Restart();
    }
    CheckReaders();
  }

  /// Ends the run, and then all pulls. Afterwards no call may be waiting.
  void End() {
    while (published_ + 1 < stamps_.size()) Publish();
    is_over_ = true;
    Take(shard_.core().OnPhase(Phase::kEvaluating, Version{}));
    CheckReaders();
    while (!reads_.empty() && !testing::Test::HasFailure()) {
      EndPull();
      CheckReaders();
    }
    ASSERT_EQ(shard_.core().waiting(), 0u);
  }

 private:
  struct Read {
    uint64_t version = 0;
    bool has_lagged = false;
  };

  // The model.

  bool IsKept(uint64_t version) const {
    return version <= published_ && version + options_.versions_kept > published_;
  }

  std::optional<uint64_t> FindKept(const Stamp& stamp) const {
    for (uint64_t version = 0; version < stamps_.size(); ++version) {
      if (IsKept(version) && stamps_[version] == stamp) return version;
    }
    return std::nullopt;
  }

  bool IsGone(const Stamp& stamp) const {
    return !FindKept(stamp).has_value() && (is_over_ || stamp < stamps_[published_]);
  }

  /// Returns the versions that are read by readers who have not lagged.
  std::set<uint64_t> VersionsRead() const {
    std::set<uint64_t> versions;
    for (const auto& [_, read] : reads_) {
      if (!read.has_lagged) versions.insert(read.version);
    }
    return versions;
  }

  std::set<uint64_t> VersionsReadAndNotKept() const {
    std::set<uint64_t> versions = VersionsRead();
    std::erase_if(versions, [this](uint64_t version) { return IsKept(version); });
    return versions;
  }

  bool HasPlaceFor(uint64_t version) const {
    std::set<uint64_t> versions = VersionsRead();
    versions.insert(version);
    return reads_.size() < options_.reader_pulls_max &&
           versions.size() <= options_.versions_kept + 1;
  }

  // The events.

  void Push() {
    clock_ += 1 + random_.Below(2);  // The weights of some clocks are never published.
    ShardMachine::PushFacts push = shard_.NextPush(clock_, random_.NextWord());
    push.header.base = Version{random_.Below(static_cast<uint32_t>(stamps_.size()))};
    stamps_.push_back({.publisher = shard_.publisher(), .number = clock_});
    labels_.push_back(push.header.label);

    const ShardOutput output = shard_.Push(push);

    ASSERT_EQ(output.record->reply.staleness, 0u);
    Take(output);
  }

  void Publish() {
    if (published_ + 1 == stamps_.size()) return;
    ++published_;
    Take(shard_.PublishNext());
  }

  void Restart() {
    clock_ = 0;
    Take(shard_.Restart(Incarnation{Value(shard_.publisher()) + 1 + random_.Below(3)}));
  }

  /// Returns the stamp of a version of late, of one that never was, or of one that may come.
  Stamp RandomStamp() {
    const uint32_t die = random_.Below(4);
    if (die == 0) return {shard_.publisher(), clock_ + 1 + random_.Below(3)};
    if (die == 1) return {shard_.publisher(), random_.Below(static_cast<uint32_t>(clock_ + 1))};
    const size_t back = std::min<size_t>(random_.Below(6), stamps_.size() - 1);
    return stamps_[stamps_.size() - 1 - back];
  }

  void Pull() {
    std::optional<Stamp> exact;
    if (random_.Below(2) == 0) exact = RandomStamp();
    const uint64_t call = next_call_++;
    waits_.emplace(call, exact);
    Take(shard_.Pull(call, exact));
    if (waits_.contains(call)) ++seen_.waited;
  }

  void EndPull() {
    if (reads_.empty()) return;
    auto read = reads_.begin();
    std::advance(read, random_.Below(static_cast<uint32_t>(reads_.size())));
    const uint64_t call = read->first;
    reads_.erase(read);
    Take(shard_.Done(call));
  }

  void Cancel() {
    if (waits_.empty() || random_.Below(4) != 0) return;
    auto wait = waits_.begin();
    std::advance(wait, random_.Below(static_cast<uint32_t>(waits_.size())));
    ASSERT_TRUE(shard_.core().OnCancelled(CallId{wait->first}));
    waits_.erase(wait);
  }

  // The checks.

  void Take(const ShardOutput& output) {
    TakeLagged(output);
    for (const ShardAnswer& answer : output.answers) {
      if (!answer.push.has_value()) TakeAnswer(answer);
    }
  }

  void TakeLagged(const ShardOutput& output) {
    std::set<uint64_t> expected;
    const std::set<uint64_t> versions = VersionsReadAndNotKept();
    const bool is_one_too_many = versions.size() > ShardMachine::kReaderVersionsMax;
    for (auto& [call, read] : reads_) {
      if (!is_one_too_many || read.has_lagged || read.version != *versions.begin()) continue;
      read.has_lagged = true;
      expected.insert(call);
    }
    std::set<uint64_t> lagged;
    for (const CallId call : output.lagged) {
      ASSERT_TRUE(lagged.insert(Value(call)).second) << "named twice";
    }
    ASSERT_EQ(lagged, expected);
    seen_.lagged += lagged.size();
  }

  void TakeAnswer(const ShardAnswer& answer) {
    const auto asked = waits_.extract(Value(answer.call));
    ASSERT_FALSE(asked.empty()) << "answers a call that does not wait";
    const std::optional<Stamp>& exact = asked.mapped();
    if (answer.refusal.has_value()) {
      ++seen_.refused;
      ASSERT_EQ(answer.refusal, PullRefusal::kLagged);
      ASSERT_TRUE(exact.has_value() && IsGone(*exact));
      return;
    }
    ++seen_.served;
    ASSERT_TRUE(answer.weights.has_value());
    const uint64_t version = Value(answer.weights->version);
    ASSERT_TRUE(IsKept(version));
    ASSERT_EQ(answer.weights->stamp, stamps_[version]);
    ASSERT_EQ(answer.weights->label, labels_[version]);
    if (exact.has_value()) {
      ASSERT_EQ(answer.weights->stamp, exact);
    } else {
      ASSERT_EQ(version, published_);
    }
    ASSERT_TRUE(HasPlaceFor(version));
    reads_.emplace(asked.key(), Read{.version = version});
  }

  void CheckReaders() {
    const ShardMachine& core = shard_.core();
    ASSERT_EQ(core.pulls_under_way(), reads_.size());
    ASSERT_EQ(core.WaitingPulls(), waits_.size());
    ASSERT_LE(VersionsReadAndNotKept().size(), ShardMachine::kReaderVersionsMax);
    bool wait_for_place = false;
    for (const auto& [call, exact] : waits_) {
      ASSERT_FALSE(exact.has_value() && IsGone(*exact)) << "call " << call;
      const std::optional<uint64_t> version = exact.has_value() ? FindKept(*exact) : published_;
      if (!version.has_value()) continue;  // It may still come.
      ASSERT_FALSE(HasPlaceFor(*version)) << "call " << call << " waits for nothing";
      wait_for_place = true;
    }
    ASSERT_EQ(core.ReadersWaitForPlace(), wait_for_place);
  }

  RandomStream random_;
  const ShardMachine::Options options_;
  PublishedShard shard_;
  Seen& seen_;
  uint32_t share_of_ends_ = 0;
  uint64_t clock_ = 0;
  uint64_t next_call_ = 1;

  // All versions that were made, and the newest published one.
  std::vector<Stamp> stamps_ = {Stamp{}};
  std::vector<uint64_t> labels_ = {0};
  uint64_t published_ = 0;
  bool is_over_ = false;

  std::map<uint64_t, Read> reads_;                  // The pulls under way.
  std::map<uint64_t, std::optional<Stamp>> waits_;  // What the calls that wait have asked for.
};

TEST(ShardReadersProperty, AgreesWithTheNaiveModelUnderRandomHistories) {
  Seen seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History history(seed, seen);
    for (int step = 0; step < 400; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      history.Step();
      if (testing::Test::HasFailure()) return;
    }
    history.End();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(seen.served, 1000u);
  EXPECT_GT(seen.refused, 100u);
  EXPECT_GT(seen.waited, 100u);
  EXPECT_GT(seen.lagged, 100u);
}

}  // namespace
}  // namespace slipstream
