#ifndef SLIPSTREAM_TESTS_SERVER_CORE_SHARD_NAIVE_ROUNDS_H_
#define SLIPSTREAM_TESTS_SERVER_CORE_SHARD_NAIVE_ROUNDS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/view.h"
#include "common/settings/run_spec.h"
#include "tests/server/core/shard/random_shard.h"

namespace slipstream {

/// A gradient that was pushed, as one number.
struct GivenPush {
  WorkerId worker{};
  Version base{};
  uint32_t examples = 0;
  double gradient = 0;
};

/// Rounds close when a naive model of the rules says so, with the gradients that it says. The model
/// keeps everything that ever happened. Of some settings it does not know the rules: then nothing
/// is checked.
class NaiveRounds : public ShardProperty {
 public:
  explicit NaiveRounds(const ShardSetting& setting)
      : is_known(setting.has_naive_rounds()), consistency_(setting.consistency) {}

  std::string name() const override { return "rounds close as the naive model says"; }

  void Check(const ShardStep& step) override {
    if (!is_known) return;
    Note(step);
    if (step.effect.output.saves) saved_ = now_;
    const ShardMachine& machine = step.machine;
    ASSERT_EQ(machine.decided(), now_.decided);
    ASSERT_EQ(machine.published(), now_.published);
    ASSERT_EQ(machine.round().contributions(), now_.round.size());
    ASSERT_EQ(machine.round().excused(), now_.excused.size());
    const NamedLack lack = machine.Lacks();
    ASSERT_EQ(std::vector<WorkerId>(lack.members.begin(), lack.members.end()), Awaited());
    uint64_t gradients = 0;
    for (const auto& [worker, count] : now_.joined) {
      ASSERT_TRUE(machine.lag().workers().contains(worker));
      ASSERT_EQ(machine.lag().workers().at(worker).pushes, count);
      gradients += count;
    }
    ASSERT_EQ(machine.lag().gradients(), gradients);
    ASSERT_EQ(machine.examples_applied(), now_.examples);
  }

  const bool is_known;

  /// The gradients of the round that has made the newest version.
  const std::vector<GivenPush>& closed() const { return now_.closed; }
  bool is_hardsync() const { return consistency_.policy == PolicyKind::kHardsync; }

  /// Returns the version that the answer to a push waits for, which is fixed by the push. REQUIRES:
  /// it waits for one.
  Version WantOf(const ShardStep& step) const {
    const PushReply& reply = step.effect.output.record->reply;
    const bool is_repeated = reply.outcome == PushOutcome::kDuplicate;
    if (reply.first_outcome == PushOutcome::kApplied) return std::max(reply.version, now_.decided);
    const WorkerId worker = step.event.push.header.identity.worker;
    if (is_repeated)
      return is_hardsync() && HasAnswered(worker) ? Next(now_.decided) : now_.decided;
    return reply.outcome == PushOutcome::kBuffered ? now_.decided : reply.version;
  }

 private:
  /// The part of the model that is saved and returns.
  struct Rounds {
    View view;
    std::map<WorkerId, Version> owes_from;
    Version decided{};
    Version published{};
    uint64_t examples = 0;
    std::vector<GivenPush> round;
    std::set<WorkerId> excused;
    std::vector<GivenPush> closed;
    std::map<WorkerId, uint64_t> joined;
  };

  void Note(const ShardStep& step) {
    const ShardEvent& event = step.event;
    if (event.kind == ShardEvent::Kind::kPush) NotePush(step);
    if (event.kind == ShardEvent::Kind::kPull) NotePull(step);
    if (event.kind == ShardEvent::Kind::kPublish) now_.published = Next(now_.published);
    if (event.kind == ShardEvent::Kind::kView) NoteView(event.view);
    if (event.kind == ShardEvent::Kind::kPhase) is_draining_ = event.phase >= Phase::kDraining;
    if (event.kind == ShardEvent::Kind::kReturn) {
      now_ = saved_;
      now_.published = now_.decided;
      now_.excused.clear();
    } else if (IsDue()) {
      Close();
    }
  }

  void NoteView(const View& next) {
    for (uint32_t id = 0; id < 64; ++id) {
      const Member* before = now_.view.Find(WorkerId{id});
      const Member* now = next.Find(WorkerId{id});
      if (before == nullptr || now == nullptr || before->incarnation != now->incarnation) {
        now_.owes_from.erase(WorkerId{id});
      }
      if (now != nullptr && now->founding) now_.owes_from.emplace(WorkerId{id}, Version{});
    }
    now_.view = next;
  }

  void NotePush(const ShardStep& step) {
    const PushHeader& header = step.event.push.header;
    const PushRecord& record = *step.effect.output.record;
    if (record.took_effect) NoteEffect(step);
    if (!record.took_effect && record.reply.outcome != PushOutcome::kDuplicate) return;
    const WorkerId worker = header.identity.worker;
    const bool is_newest = Next(header.sequence) == step.machine.members().At(worker).expected();
    if (header.pull && is_newest) now_.owes_from.emplace(worker, WantOf(step));
  }

  void NoteEffect(const ShardStep& step) {
    const PushHeader& header = step.event.push.header;
    const ShardOutput& output = step.effect.output;
    const PushReply& reply = output.record->reply;
    const WorkerId worker = header.identity.worker;
    const bool is_late =
        is_draining_ || (is_hardsync() && (header.base < now_.decided || HasAnswered(worker)));
    ASSERT_EQ(reply.outcome == PushOutcome::kDroppedLate, is_late);
    ASSERT_EQ(output.keeps_payload, !is_late && header.count > 0);
    if (is_late) return;
    ASSERT_EQ(reply.version, Next(now_.decided));
    // In an exchange under hardsync the push waits for the round, and so is told its end.
    const bool is_told = output.update.has_value() || (header.pull && is_hardsync());
    ASSERT_EQ(reply.outcome, is_told ? PushOutcome::kApplied : PushOutcome::kBuffered);
    if (header.count == 0) {
      now_.excused.insert(worker);
      return;
    }
    // Whole weights are of no base.
    const Version base = header.kind == PushKind::kValues ? now_.decided : header.base;
    now_.round.push_back({worker, base, header.examples, step.event.gradient});
    ++now_.joined[worker];
  }

  /// A worker asks for weights to train on, of a version that the open round may still have to
  /// make.
  void NotePull(const ShardStep& step) {
    const PullRequest& request = step.event.pull;
    if (!is_hardsync() || !request.trains) return;
    const WorkerId worker = request.identity->worker;
    if (request.sequence < step.machine.members().At(worker).expected()) return;
    const Version version = std::max(request.min_version, now_.decided);
    now_.owes_from.emplace(worker, version);
    if (version > now_.decided && !HasAnswered(worker)) now_.excused.insert(worker);
  }

  bool HasAnswered(WorkerId worker) const {
    return now_.excused.contains(worker) ||
           std::ranges::count(now_.round, worker, &GivenPush::worker) > 0;
  }

  std::vector<WorkerId> Awaited() const {
    std::vector<WorkerId> awaited;
    if (!is_hardsync()) return awaited;
    for (const auto& [worker, from] : now_.owes_from) {
      if (from <= now_.decided && !HasAnswered(worker)) awaited.push_back(worker);
    }
    return awaited;
  }

  bool IsDue() const {
    if (is_hardsync()) return now_.round.size() + now_.excused.size() > 0 && Awaited().empty();
    if (now_.round.empty()) return false;
    if (is_draining_ || consistency_.policy == PolicyKind::kAsync) return true;
    const auto fixed = static_cast<size_t>(consistency_.parameters["c"]);
    const auto n = static_cast<size_t>(consistency_.parameters["n"]);
    const size_t size = std::max<size_t>(1, now_.view.members.size() / n);
    return now_.round.size() >= (fixed > 0 ? fixed : size);
  }

  void Close() {
    for (const GivenPush& given : now_.round) now_.examples += given.examples;
    now_.closed = std::move(now_.round);
    now_.round.clear();
    now_.excused.clear();
    now_.decided = Next(now_.decided);
  }

  const ConsistencySpec consistency_;
  Rounds now_;
  Rounds saved_;
  bool is_draining_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_CORE_SHARD_NAIVE_ROUNDS_H_
