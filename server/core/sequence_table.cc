#include "server/core/sequence_table.h"

#include <algorithm>

#include "common/base/check.h"

namespace slipstream {

void SequenceTable::InstallView(const View& view) {
  std::erase_if(entries_, [&view](const auto& item) { return view.Find(item.first) == nullptr; });
  for (const Member& member : view.members) {
    Entry& entry = entries_[member.worker];
    if (entry.incarnation != member.incarnation) entry = {.incarnation = member.incarnation};
    newest_ = std::max(newest_, member.incarnation);
  }
}

SequenceTable::Verdict SequenceTable::CheckMember(WorkerId worker, Incarnation incarnation) const {
  const auto found = entries_.find(worker);
  if (found != entries_.end() && found->second.incarnation == incarnation) return Verdict::kFresh;
  return incarnation > newest_ ? Verdict::kUnknownMember : Verdict::kFenced;
}

SequenceTable::Verdict SequenceTable::Check(WorkerId worker, Incarnation incarnation,
                                            Sequence sequence) const {
  const Verdict member = CheckMember(worker, incarnation);
  if (member != Verdict::kFresh) return member;
  const Sequence expected = Expected(worker);
  if (sequence == expected) return Verdict::kFresh;
  if (sequence > expected || sequence == Sequence{}) return Verdict::kGap;
  return Find(worker, sequence) != nullptr ? Verdict::kRepeated : Verdict::kTooOld;
}

const PushReply* SequenceTable::FindAnswer(WorkerId worker, Sequence sequence,
                                           uint64_t checksum) const {
  const Answer* answer = Find(worker, sequence);
  PS_CHECK(answer != nullptr);
  return answer->checksum == checksum ? &answer->reply : nullptr;
}

void SequenceTable::Record(WorkerId worker, Sequence sequence, uint64_t checksum,
                           const PushReply& answer) {
  Entry& entry = entries_.at(worker);
  PS_CHECK(sequence == Next(entry.last));
  entry.last = sequence;
  entry.answers.push_back({sequence, checksum, answer});
  if (entry.answers.size() > kAnswersKept) entry.answers.pop_front();
}

const SequenceTable::Answer* SequenceTable::Find(WorkerId worker, Sequence sequence) const {
  const Entry& entry = entries_.at(worker);
  const auto found = std::find_if(entry.answers.begin(), entry.answers.end(),
                                  [&](const Answer& kept) { return kept.sequence == sequence; });
  return found == entry.answers.end() ? nullptr : &*found;
}

}  // namespace slipstream
