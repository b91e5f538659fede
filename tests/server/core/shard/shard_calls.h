#ifndef SLIPSTREAM_TESTS_SERVER_CORE_SHARD_SHARD_CALLS_H_
#define SLIPSTREAM_TESTS_SERVER_CORE_SHARD_SHARD_CALLS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/server/core/shard/naive_rounds.h"
#include "tests/server/core/shard/random_shard.h"

namespace slipstream {

/// Each call has one answer, as soon as there is the version that it waits for, a place among the
/// readers, and no reader too far behind; and from the version that it asks for. Readers of
/// versions that cannot be kept have lagged.
class CallsAreAnswered : public ShardProperty {
 public:
  CallsAreAnswered(const ShardSetting& setting, const ShardMachine::Options& options,
                   const NaiveRounds& rounds, ShardsSeen& seen)
      : setting_(setting), options_(options), rounds_(rounds), seen_(seen) {}

  std::string name() const override { return "each call is answered when it can be, and once"; }

  void Check(const ShardStep& step) override {
    Note(step);
    TakeLagged(step.effect.output);
    for (const ShardAnswer& answer : step.effect.output.answers) {
      TakeAnswer(answer);
      if (testing::Test::HasFailure()) return;
    }
    CheckWaiting(step.machine);
    if (waits_.contains(step.event.call)) ++seen_.waited;
  }

 private:
  using Kind = ShardEvent::Kind;

  struct Wait {
    /// The version to wait for; empty if only the policy knows.
    std::optional<Version> want;
    std::optional<Stamp> exact = {};
    bool is_pull = false;
    bool wants_weights = true;
    bool trains = false;
    bool goes_on = false;  // So it waits for readers, too.
    Reader reader = {};
    uint64_t awaited_reader = 0;
  };

  struct Read {
    Version version;
    Reader reader;
    uint64_t awaited_reader = 0;
    bool has_lagged = false;
  };

  struct Made {
    std::optional<Stamp> stamp;
    uint64_t label = 0;
    uint64_t examples = 0;
  };

  struct Place {
    Version held;
    uint64_t lag_max = 0;
  };

  // The model.

  bool IsKept(Version version) const {
    return version <= published_ && version >= kept_from_ &&
           Value(version) + options_.versions_kept > Value(published_);
  }

  std::optional<Version> FindKept(const Stamp& stamp) const {
    for (uint64_t version = Value(published_) + 1; version-- > 0 && IsKept(Version{version});) {
      if (made_[version].stamp == stamp) return Version{version};
    }
    return std::nullopt;
  }

  bool IsGone(const Stamp& stamp) const {
    const std::optional<Stamp>& newest = made_[Value(published_)].stamp;
    const bool is_past = !newest.has_value() || stamp < *newest;
    return !FindKept(stamp).has_value() && (phase_ > Phase::kDraining || is_past);
  }

  /// Returns the versions that are read by readers who are no members and have not lagged.
  std::set<Version> VersionsRead() const {
    std::set<Version> versions;
    for (const auto& [_, read] : reads_) {
      if (!read.reader.has_value() && !read.has_lagged) versions.insert(read.version);
    }
    return versions;
  }

  std::set<Version> VersionsReadAndNotKept() const {
    std::set<Version> versions = VersionsRead();
    std::erase_if(versions, [this](Version version) { return IsKept(version); });
    return versions;
  }

  size_t ReadsOf(const Reader& reader) const {
    return static_cast<size_t>(std::ranges::count_if(
        reads_, [&reader](const auto& read) { return read.second.reader == reader; }));
  }

  bool HasPlaceFor(const Reader& reader, Version version) const {
    if (reader.has_value()) return ReadsOf(reader) == 0;
    std::set<Version> versions = VersionsRead();
    versions.insert(version);
    return ReadsOf(reader) < options_.reader_pulls_max &&
           versions.size() <= options_.versions_kept + 1;
  }

  bool HoldsBack() const {
    return std::ranges::any_of(places_, [this](const auto& entry) {
      const Place& place = entry.second;
      return made_.size() - 1 >= Value(place.held) + place.lag_max;
    });
  }

  /// Returns the version that would answer the call; nothing if there is none.
  std::optional<Version> VersionFor(const Wait& wait) const {
    const bool nothing_newer_comes =
        phase_ == Phase::kFailed ||
        (phase_ >= Phase::kDraining && Value(published_) + 1 == made_.size());
    if (*wait.want > published_ && !nothing_newer_comes) return std::nullopt;
    return wait.exact.has_value() ? FindKept(*wait.exact) : published_;
  }

  bool CanBeServed(const Wait& wait) const {
    const std::optional<Version> version = VersionFor(wait);
    return version.has_value() && !(wait.goes_on && HoldsBack()) &&
           (!wait.is_pull || HasPlaceFor(wait.reader, *version));
  }

  // The events.

  void Note(const ShardStep& step) {
    const ShardEvent& event = step.event;
    switch (event.kind) {
      case Kind::kPhase:
        phase_ = event.phase;
        break;
      case Kind::kPublish:
        published_ = Next(published_);
        break;
      case Kind::kAwaitedReaders:
        std::erase_if(places_,
                      [&](const auto& place) { return !event.readers.contains(place.first); });
        for (const auto& [reader, lag_max] : event.readers) {
          places_.try_emplace(reader, Place{.held = published_}).first->second.lag_max = lag_max;
        }
        break;
      case Kind::kReturn:
        waits_.clear();
        reads_.clear();
        places_.clear();
        made_.resize(Value(step.machine.decided()) + 1);
        published_ = kept_from_ = step.machine.decided();
        break;
      case Kind::kProcessEnd:
        waits_.clear();
        reads_.clear();
        kept_from_ = std::max(kept_from_, event.end.oldest_kept);
        break;
      case Kind::kCancel:
        ASSERT_EQ(waits_.erase(event.call), 1u);
        break;
      case Kind::kPullDone:
        NotePullDone(reads_.extract(event.call).mapped());
        break;
      case Kind::kPull:
        NotePull(step);
        break;
      case Kind::kPush:
        NotePush(step);
        break;
      default:
        break;
    }
    if (step.effect.output.update.has_value()) NoteVersion(step);
  }

  void NoteVersion(const ShardStep& step) {
    // NaiveRounds checks that it is so.
    Made made = {.label = made_.back().label, .examples = step.machine.examples_applied()};
    if (setting_.publishes) {
      const PushHeader& header = step.event.push.header;
      made.stamp = Stamp{header.identity.incarnation, Value(header.clock)};
      made.label = header.label;
    } else if (setting_.consistency.traits().in_step) {
      made.stamp = Stamp{.number = made_.size()};
    }
    made_.push_back(made);
  }

  /// A publisher that waits for its answers leaves no reader further behind than it wants to be.
  void NotePullDone(const Read& read) {
    const auto place = places_.find(read.awaited_reader);
    if (!setting_.awaits_readers || place == places_.end()) return;
    ASSERT_LE(Value(published_) - Value(read.version), place->second.lag_max);
  }

  void NotePull(const ShardStep& step) {
    const PullRequest& request = step.event.pull;
    Wait wait = {.want = request.min_version,
                 .exact = request.trains ? std::nullopt : request.exact,
                 .is_pull = true,
                 .reader = ReaderOf(request),
                 .awaited_reader = request.reader};
    const MemberRecord* const member =
        request.trains ? &step.machine.members().At(request.identity->worker) : nullptr;
    if (member != nullptr && request.sequence == member->expected()) {
      wait.trains = wait.goes_on = true;
      if (!rounds_.is_known) wait.want.reset();
      if (rounds_.is_known && rounds_.is_hardsync()) {
        wait.want = std::max(request.min_version, step.decided_before);
      }
    }
    ASSERT_TRUE(waits_.emplace(step.event.call, wait).second);
  }

  void NotePush(const ShardStep& step) {
    const PushHeader& header = step.event.push.header;
    const PushReply& reply = step.effect.output.record->reply;
    if (IsRefusal(reply.outcome)) return;
    Wait wait = {.want = std::nullopt, .wants_weights = header.pull};
    const bool waits = WaitsForVersion(header, reply);
    if (!waits) wait.want = Version{};
    if (waits && rounds_.is_known) wait.want = rounds_.WantOf(step);
    const MemberRecord& member = step.machine.members().At(header.identity.worker);
    const bool is_newest = Next(header.sequence) == member.expected();
    wait.trains = is_newest && header.pull;
    wait.goes_on = is_newest && waits && (header.pull || header.count > 0);
    ASSERT_TRUE(waits_.emplace(step.event.call, wait).second);
  }

  /// Returns whether the answer to a push waits for a version.
  static bool WaitsForVersion(const PushHeader& header, const PushReply& reply) {
    const PushOutcome outcome = reply.first_outcome.value_or(reply.outcome);
    const bool is_late = reply.outcome == PushOutcome::kDroppedLate;
    return header.pull || outcome == PushOutcome::kApplied || is_late;
  }

  // The checks.

  void TakeLagged(const ShardOutput& output) {
    std::vector<CallId> expected;
    const std::set<Version> versions = VersionsReadAndNotKept();
    const bool is_one_too_many = versions.size() > ShardMachine::kReaderVersionsMax;
    for (auto& [call, read] : reads_) {
      const bool is_oldest = is_one_too_many && read.version == *versions.begin();
      if (!is_oldest || read.has_lagged || read.reader.has_value()) continue;
      read.has_lagged = true;
      expected.push_back(call);
    }
    std::vector<CallId> lagged = output.lagged;
    std::ranges::sort(lagged);
    ASSERT_EQ(lagged, expected);
    seen_.lagged += lagged.size();
  }

  void TakeAnswer(const ShardAnswer& answer) {
    if (answer.push.has_value() && IsRefusal(answer.push->outcome)) return;
    const auto asked = waits_.extract(answer.call);
    ASSERT_FALSE(asked.empty()) << "answers a call that does not wait";
    const Wait& wait = asked.mapped();
    if (answer.refusal.has_value()) {
      ++seen_.refused;
      ASSERT_EQ(answer.refusal, PullRefusal::kLagged);
      ASSERT_TRUE(wait.exact.has_value() && IsGone(*wait.exact));
      return;
    }
    ASSERT_EQ(answer.weights.has_value(), wait.wants_weights);
    if (wait.want.has_value()) {
      ASSERT_TRUE(CanBeServed(wait)) << "call " << Value(answer.call) << " is answered too early";
    }
    if (!answer.weights.has_value()) return;
    ++seen_.served;
    const Version version = answer.weights->version;
    const std::optional<Version> exact =
        wait.exact.has_value() ? FindKept(*wait.exact) : published_;
    ASSERT_EQ(version, exact);
    if (rounds_.is_known) {
      const bool is_round = setting_.consistency.traits().one_per_member;
      ASSERT_EQ(answer.weights->work.has_value(), wait.trains && is_round);
    }
    if (!wait.is_pull) return;
    if (!wait.trains) {
      ASSERT_EQ(answer.weights->stamp, made_[Value(version)].stamp);
      ASSERT_EQ(answer.weights->label, made_[Value(version)].label);
      ASSERT_EQ(answer.weights->examples, made_[Value(version)].examples);
    }
    reads_.emplace(asked.key(), Read{version, wait.reader, wait.awaited_reader});
    const auto place = places_.find(wait.awaited_reader);
    if (place != places_.end()) place->second.held = std::max(place->second.held, version);
  }

  void CheckWaiting(const ShardMachine& machine) {
    ASSERT_EQ(machine.published(), published_);
    ASSERT_EQ(machine.waiting(), waits_.size());
    ASSERT_EQ(machine.pulls_under_way(), reads_.size());
    ASSERT_LE(VersionsReadAndNotKept().size(), ShardMachine::kReaderVersionsMax);
    size_t pulls = 0;
    bool wait_for_place = false;
    for (const auto& [call, wait] : waits_) {
      if (wait.is_pull) ++pulls;
      ASSERT_FALSE(wait.exact.has_value() && IsGone(*wait.exact)) << "call " << Value(call);
      if (!wait.want.has_value()) continue;
      ASSERT_FALSE(CanBeServed(wait)) << "call " << Value(call) << " waits for nothing";
      const bool is_reader = wait.is_pull && !wait.reader.has_value();
      if (is_reader && *wait.want <= published_ && VersionFor(wait)) wait_for_place = true;
    }
    ASSERT_EQ(machine.WaitingPulls(), pulls);
    ASSERT_EQ(machine.ReadersWaitForPlace(), wait_for_place);
  }

  const ShardSetting& setting_;
  const ShardMachine::Options& options_;
  const NaiveRounds& rounds_;
  ShardsSeen& seen_;
  std::vector<Made> made_ = {Made{.stamp = Stamp{}}};  // By version, beginning with version 0.
  Version published_{};
  Version kept_from_{};
  Phase phase_{};
  std::map<CallId, Wait> waits_;
  std::map<CallId, Read> reads_;  // The pulls under way.
  std::map<uint64_t, Place> places_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_CORE_SHARD_SHARD_CALLS_H_
