#include "server/core/shard/shard_questions.h"

#include <optional>

namespace slipstream {

MemberFacts ShardQuestions::FactsOf(WorkerId worker) const {
  return {.heard = state_.open.round.HasHeardFrom(worker),
          .clock = state_.members.At(worker).clock};
}

ShardFacts ShardQuestions::Facts() const {
  const std::optional<AwaitedMembers>& awaited = state_.open.awaited;
  return {.decided = state_.versions.decided(),
          .is_first = rules_.is_first(),
          .contributions = state_.open.round.contributions(),
          .excused = state_.open.round.excused(),
          .was_held_back = state_.open.was_held_back,
          .is_draining = state_.run.phase >= Phase::kDraining,
          .member_count = static_cast<uint32_t>(state_.members.view().members.size()),
          .awaited = awaited.has_value() ? static_cast<uint32_t>(awaited->all().size()) : 0,
          .oldest_base = state_.members.OldestBase()};
}

NamedLack ShardQuestions::NamesLacked() const {
  const Lack lack = Lacks();
  NamedLack named = {.gradients = lack.gradients, .is_held_back = lack.is_held_back()};
  if (lack.none()) return named;
  state_.members.ForEach([&](WorkerId worker, const MemberRecord&) {
    if (IsLacked(lack, worker)) named.members.push_back(worker);
  });
  return named;
}

bool ShardQuestions::IsAwaited(WorkerId worker) const { return IsLacked(Lacks(), worker); }

bool ShardQuestions::IsLacked(const Lack& lack, WorkerId worker) const {
  const std::optional<AwaitedMembers>& awaited = state_.open.awaited;
  if (lack.each_awaited && awaited.has_value() && awaited->all().contains(worker)) return true;
  if (!lack.is_held_back()) return false;
  const std::optional<Version> base = state_.members.At(worker).OldestBase();
  return base.has_value() && *base < *lack.bases_before;
}

PullCondition ShardQuestions::WaitsFor(WorkerId worker, uint32_t slot, bool after_push) const {
  const MemberRecord& record = state_.members.At(worker);
  const MemberFacts member = FactsOf(worker);
  PullCondition condition = rules_.policy().PullWaitsFor(
      Facts(),
      {.member = member, .after_push = after_push, .has_beside = record.HasBaseBeside(slot)});
  // A worker that asks again is given the version that it was promised.
  condition.version = record.FindBase(slot).value_or(condition.version);
  return condition;
}

std::vector<WorkerId> ShardQuestions::Owing() const {
  return state_.members.Where([this](const MemberRecord& member) { return Owes(member); });
}

bool ShardQuestions::WorkIsDone() const {
  if (!rules_.works_in_rounds()) return state_.run.phase >= Phase::kDraining;
  const std::optional<RoundWorkPlan>& work = state_.open.work;
  if (state_.run.phase < Phase::kDraining) return work.has_value() && work->finished();
  // Without members, nobody is left to push to the missing rounds.
  return state_.versions.decided() >= state_.run.drain_version ||
         state_.members.view().members.empty();
}

bool ShardQuestions::IsDrained() const {
  const bool is_published = state_.versions.published() == state_.versions.decided();
  if (!state_.initial_weights.is_initialized() || !is_published) return false;
  return state_.open.round.contributions() == 0 && WorkIsDone();
}

}  // namespace slipstream
