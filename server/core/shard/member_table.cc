#include "server/core/shard/member_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"

namespace slipstream {
namespace {

template <typename Counts, typename Value>
void TakeOut(Counts& counts, Value value) {
  const auto found = counts.find(value);
  if (--found->second == 0) counts.erase(found);
}

}  // namespace

const MemberRecord::Answer* MemberRecord::FindAnswer(Sequence sequence) const {
  const auto found = std::ranges::find(answers, sequence, &Answer::sequence);
  return found == answers.end() ? nullptr : &*found;
}

void MemberRecord::RecordAnswer(Sequence sequence, uint64_t checksum, const PushReply& reply) {
  PS_CHECK(sequence == expected());
  last_sequence = sequence;
  answers.push_back({sequence, checksum, reply});
  if (answers.size() > kAnswersKept) answers.pop_front();
}

const MemberRecord::Answer* MemberRecord::FindFormer(Generation generation,
                                                     Sequence sequence) const {
  if (generation != former.generation) return nullptr;
  const auto found = std::ranges::find(former.answers, sequence, &Answer::sequence);
  return found == former.answers.end() ? nullptr : &*found;
}

void MemberRecord::AddBase(uint32_t slot, Version base) {
  const auto [found, is_new] = bases.try_emplace(slot, base);
  if (!is_new) found->second = std::min(found->second, base);
}

std::optional<Version> MemberRecord::FindBase(uint32_t slot) const {
  const auto found = bases.find(slot);
  return found == bases.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Version> MemberRecord::OldestBase() const {
  std::optional<Version> oldest;
  for (const auto& [slot, base] : bases) oldest = std::min(oldest.value_or(base), base);
  return oldest;
}

bool MemberRecord::HasBaseBeside(uint32_t slot) const { return bases.size() > bases.count(slot); }

void MemberRecord::Give(uint32_t slot, Version version) {
  std::vector<Version>& versions = given[slot];
  if (!versions.empty() && versions.back() == version) return;
  if (versions.size() == kBasesOfSlotMax) versions.erase(versions.begin() + 1);
  versions.push_back(version);
}

void MemberRecord::SettleBase(uint32_t slot, Version base) {
  if (WasGiven(slot, base)) given[slot] = {base};
}

bool MemberRecord::WasGiven(uint32_t slot, Version version) const {
  const auto found = given.find(slot);
  return found != given.end() && std::ranges::count(found->second, version) > 0;
}

void MemberTable::InstallView(const View& view) {
  std::map<WorkerId, MemberRecord> records;
  for (const Member& member : view.members) {
    MemberRecord& record = records[member.worker];
    if (Find(member.worker, member.incarnation) != nullptr) {
      record = std::move(At(member.worker));
      records_.erase(member.worker);
    } else {
      record.incarnation = member.incarnation;
    }
    if (member.founding && !record.owes_from.has_value()) record.owes_from = Version{};
    newest_ = std::max(newest_, member.incarnation);
  }
  for (const auto& [worker, departed] : records_) {
    if (departed.pulls_under_way == 0) continue;
    pulls_of_the_departed_[{worker, departed.incarnation}] = departed.pulls_under_way;
  }
  records_ = std::move(records);
  view_ = view;
  CountAll();
}

void MemberTable::KeepPace(WorkerId worker, WorkerClock named) {
  MemberRecord& record = At(worker);
  if (record.is_in_pace && named <= record.clock) return;
  if (record.is_in_pace) TakeOut(in_pace_, record.clock);
  record.KeepPace(named);
  ++in_pace_[record.clock];
}

void MemberTable::Rest(WorkerId worker) {
  MemberRecord& record = At(worker);
  if (std::exchange(record.is_in_pace, false)) TakeOut(in_pace_, record.clock);
}

void MemberTable::AddBase(WorkerId worker, uint32_t slot, Version base) {
  MemberRecord& record = At(worker);
  if (const auto before = record.FindBase(slot)) TakeOut(on_their_way_, *before);
  record.AddBase(slot, base);
  ++on_their_way_[*record.FindBase(slot)];
}

void MemberTable::Give(WorkerId worker, uint32_t slot, Version version) {
  MemberRecord& record = At(worker);
  UncountGiven(record, slot);
  record.Give(slot, version);
  CountGiven(record, slot);
}

void MemberTable::SettleBase(WorkerId worker, uint32_t slot, Version base) {
  MemberRecord& record = At(worker);
  UncountGiven(record, slot);
  record.SettleBase(slot, base);
  CountGiven(record, slot);
}

void MemberTable::EndBase(WorkerId worker, uint32_t slot) {
  MemberRecord& record = At(worker);
  if (const auto base = record.FindBase(slot)) TakeOut(on_their_way_, *base);
  UncountGiven(record, slot);
  record.EndBase(slot);
}

void MemberTable::CountGiven(const MemberRecord& record, uint32_t slot) {
  const auto found = record.given.find(slot);
  if (found == record.given.end()) return;
  for (const Version version : found->second) {
    if (++given_[version] == 1) released_.erase(version);
  }
}

void MemberTable::UncountGiven(const MemberRecord& record, uint32_t slot) {
  const auto found = record.given.find(slot);
  if (found == record.given.end()) return;
  for (const Version version : found->second) {
    TakeOut(given_, version);
    if (!given_.contains(version)) released_.insert(version);
  }
}

MemberTable::Counts<WorkerClock> MemberTable::CountPace() const {
  Counts<WorkerClock> counts;
  for (const auto& [worker, record] : records_) {
    if (record.is_in_pace) ++counts[record.clock];
  }
  return counts;
}

MemberTable::Counts<Version> MemberTable::CountBases() const {
  Counts<Version> counts;
  for (const auto& [worker, record] : records_) {
    for (const auto& [slot, base] : record.bases) ++counts[base];
  }
  return counts;
}

MemberTable::Counts<Version> MemberTable::CountGiven() const {
  Counts<Version> counts;
  for (const auto& [worker, record] : records_) {
    for (const auto& [slot, versions] : record.given) {
      for (const Version version : versions) ++counts[version];
    }
  }
  return counts;
}

void MemberTable::CountAll() {
  in_pace_ = CountPace();
  on_their_way_ = CountBases();
  for (const auto& [version, slots] : std::exchange(given_, CountGiven())) {
    released_.insert(version);
  }
  for (const auto& [version, slots] : given_) released_.erase(version);
}

void MemberTable::BeginGeneration(Generation before) {
  RestAll();
  EndCalls();
  for (auto& [worker, record] : records_) {
    if (!record.answers.empty()) record.former = {before, std::move(record.answers)};
    record.last_sequence = {};
    record.answers.clear();
    record.bases.clear();
    record.given.clear();
  }
  CountAll();
}

void MemberTable::EndCalls() {
  pulls_of_the_departed_.clear();
  for (auto& [worker, record] : records_) {
    record.pushes_arriving = 0;
    record.pulls_under_way = 0;
  }
}

void MemberTable::ForgetAnswersAfter(Version version) {
  for (auto& [worker, record] : records_) {
    std::erase_if(record.answers, [version](const MemberRecord::Answer& answer) {
      return answer.reply.version > version;
    });
  }
}

MemberTable::Verdict MemberTable::CheckMember(WorkerId worker, Incarnation incarnation) const {
  if (Find(worker, incarnation) != nullptr) return Verdict::kFresh;
  return incarnation > newest_ ? Verdict::kUnknownMember : Verdict::kFenced;
}

MemberTable::Verdict MemberTable::Check(WorkerId worker, Incarnation incarnation,
                                        Sequence sequence) const {
  const Verdict member = CheckMember(worker, incarnation);
  if (member != Verdict::kFresh) return member;
  const MemberRecord& record = At(worker);
  if (sequence == record.expected()) return Verdict::kFresh;
  if (sequence > record.expected() || sequence == Sequence{}) return Verdict::kGap;
  return record.FindAnswer(sequence) != nullptr ? Verdict::kRepeated : Verdict::kTooOld;
}

const MemberRecord* MemberTable::Find(WorkerId worker, Incarnation incarnation) const {
  const auto found = records_.find(worker);
  const bool is_of_generation = found != records_.end() && found->second.incarnation == incarnation;
  return is_of_generation ? &found->second : nullptr;
}

WorkerClock MemberTable::NewestClock() const {
  WorkerClock newest{};
  for (const auto& [worker, record] : records_) newest = std::max(newest, record.clock);
  return newest;
}

void MemberTable::RestAll() {
  for (auto& [worker, record] : records_) record.is_in_pace = false;
  in_pace_.clear();
}

std::vector<Version> MemberTable::VersionsGiven() const {
  std::vector<Version> all;
  for (const auto& [version, slots] : given_) all.push_back(version);
  return all;
}

void MemberTable::BeginPull(WorkerId worker, Incarnation incarnation) {
  const bool is_member = Find(worker, incarnation) != nullptr;
  ++(is_member ? At(worker).pulls_under_way : pulls_of_the_departed_[{worker, incarnation}]);
}

void MemberTable::EndPull(WorkerId worker, Incarnation incarnation) {
  PS_CHECK(PullsOf(worker, incarnation) > 0);
  if (Find(worker, incarnation) != nullptr) {
    --At(worker).pulls_under_way;
    return;
  }
  const auto departed = pulls_of_the_departed_.find({worker, incarnation});
  if (--departed->second == 0) pulls_of_the_departed_.erase(departed);
}

uint32_t MemberTable::PullsOf(WorkerId worker, Incarnation incarnation) const {
  if (const MemberRecord* record = Find(worker, incarnation)) return record->pulls_under_way;
  const auto departed = pulls_of_the_departed_.find({worker, incarnation});
  return departed == pulls_of_the_departed_.end() ? 0 : departed->second;
}

uint32_t MemberTable::pulls_under_way() const {
  uint32_t pulls = 0;
  for (const auto& [worker, record] : records_) pulls += record.pulls_under_way;
  for (const auto& [generation, departed] : pulls_of_the_departed_) pulls += departed;
  return pulls;
}

std::string MemberTable::Fault(uint32_t gradients_in_flight) const {
  if (records_.size() != view_.members.size()) {
    return fmt::format("it has {} members and describes {}", view_.members.size(), records_.size());
  }
  for (const Member& member : view_.members) {
    const MemberRecord* const record = Find(member.worker, member.incarnation);
    if (record == nullptr || record->incarnation > newest_) {
      return fmt::format("it does not describe incarnation {} of worker {}",
                         Value(member.incarnation), Value(member.worker));
    }
    const bool has_slots =
        (record->bases.empty() || record->bases.rbegin()->first < gradients_in_flight) &&
        (record->given.empty() || record->given.rbegin()->first < gradients_in_flight);
    const bool has_versions = std::ranges::all_of(record->given, [](const auto& slot) {
      return !slot.second.empty() && slot.second.size() <= kBasesOfSlotMax;
    });
    if (!has_slots || !has_versions) {
      return fmt::format("worker {} has more weights than it can compute from",
                         Value(member.worker));
    }
  }
  return "";
}

void MemberTable::CheckInvariants(uint32_t gradients_in_flight) const {
  PS_CHECK(records_.size() == view_.members.size());
  for (const Member& member : view_.members) {
    const MemberRecord* record = Find(member.worker, member.incarnation);
    PS_CHECK(record != nullptr && record->incarnation <= newest_);
    const uint64_t answered = Value(record->last_sequence);
    PS_CHECK(record->answers.size() == std::min<uint64_t>(answered, MemberRecord::kAnswersKept));
    for (size_t i = 0; i < record->answers.size(); ++i) {
      PS_CHECK(Value(record->answers[i].sequence) == answered - record->answers.size() + 1 + i);
    }
    PS_CHECK(!member.founding || record->owes_from.has_value());
    PS_CHECK(record->bases.empty() || record->bases.rbegin()->first < gradients_in_flight);
    PS_CHECK(record->given.empty() || record->given.rbegin()->first < gradients_in_flight);
    for (const auto& [slot, versions] : record->given) {
      PS_CHECK(versions.size() <= kBasesOfSlotMax);
    }
    PS_CHECK(record->pushes_arriving <= gradients_in_flight + 1);
    PS_CHECK(record->pulls_under_way <= 1);
  }
  PS_CHECK(in_pace_ == CountPace() && on_their_way_ == CountBases() && given_ == CountGiven());
  for (const Version version : released_) PS_CHECK(!given_.contains(version));
  for (const auto& [generation, pulls] : pulls_of_the_departed_) {
    PS_CHECK(pulls > 0 && Find(generation.first, generation.second) == nullptr);
  }
}

}  // namespace slipstream
