#include "server/core/shard/shard_questions.h"

#include <algorithm>
#include <optional>

namespace slipstream {

MemberFacts ShardQuestions::FactsOf(WorkerId worker, const MemberRecord& member) const {
  MemberFacts facts = {.worker = worker,
                       .owes = Owes(member),
                       .heard = state_.open.round.HasHeardFrom(worker),
                       .clock = member.clock,
                       .on_their_way = static_cast<uint32_t>(member.bases.size())};
  const auto oldest =
      std::ranges::min_element(member.bases, {}, [](const auto& base) { return base.second; });
  if (oldest != member.bases.end()) facts.oldest_base = oldest->second;
  return facts;
}

ShardQuestions::Members ShardQuestions::MembersNow() const {
  Members facts;
  // No policy asks for them.
  if (!rules_.traits().one_per_member && !rules_.tracks_bases()) return facts;
  state_.members.ForEach([&](WorkerId worker, const MemberRecord& member) {
    facts.push_back(FactsOf(worker, member));
  });
  return facts;
}

ShardFacts ShardQuestions::FactsWith(const Members& members) const {
  return {.decided = state_.versions.decided(),
          .is_first = rules_.is_first(),
          .contributions = state_.open.round.contributions(),
          .excused = state_.open.round.excused(),
          .was_held_back = state_.open.was_held_back,
          .is_draining = state_.run.phase >= Phase::kDraining,
          .member_count = static_cast<uint32_t>(state_.members.view().members.size()),
          .members = members};
}

Lack ShardQuestions::Lacks() const { return rules_.policy().Lacks(FactsWith(MembersNow())); }

PullCondition ShardQuestions::WaitsFor(WorkerId worker, uint32_t slot, bool after_push) const {
  const MemberRecord& record = state_.members.At(worker);
  const MemberFacts member = FactsOf(worker, record);
  PullCondition condition = rules_.policy().PullWaitsFor(
      FactsWith(MembersNow()),
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
