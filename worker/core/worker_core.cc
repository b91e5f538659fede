#include "worker/core/worker_core.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/limits.h"
#include "worker/core/push_verdict.h"

namespace slipstream {

WorkerCore::WorkerCore(const Options& options)
    : options_(options),
      stage_{.in_step = options.in_step, .releases_unused = options.releases_unused},
      generations_(options.shards),
      sequences_(options.shards),
      shown_(options.shards),
      slots_(options.depth, Slot(options.shards)),
      is_at_work_(options.shards, false),
      is_spent_(options.depth, false),
      answers_(options.depth),
      units_(options.depth, options.quantum) {
  PS_CHECK(options.shards > 0);
  PS_CHECK(options.depth > 0 && (options.depth == 1 || !options.in_step));
  PS_CHECK(options.quantum > 0 && options.pushes_per_fetch > 0);
  const bool may_count = options.depth == 1 || options.pushes_per_fetch == kNeverFetches;
  const bool may_go_on = may_count && !options.in_step && !options.releases_unused;
  PS_CHECK(options.pushes_per_fetch == 1 || may_go_on);
}

void WorkerCore::EnterStage(const Stage& stage) {
  PS_CHECK(stage.number > stage_.number && stage.number >= stage.since);
  if (GoesOnIn(stage)) {
    PS_CHECK(!stage_.in_step && !stage.in_step);
    stage_ = stage;
    return;
  }
  // A push that was aborted because its round is over is not begun again: others did its batches.
  if (stage_.in_step) begun_.clear();
  PS_CHECK(begun_.empty());
  PS_CHECK(options_.depth == 1 || !stage.in_step);
  if (stage_.in_step && !stage.in_step) {
    // From now on each shard has generations of its own.
    generations_ = shown_;
  }
  stage_ = stage;
  is_stage_over_ = false;
  is_left_out_ = false;
  for (Slot& slot : slots_) {
    for (Held& shard : slot) {
      const bool is_usable = shard.stage >= stage.since;
      shard.is_held = shard.is_held && is_usable;
      shard.is_kept = shard.is_kept && is_usable;
    }
  }
}

WorkerCore::Action WorkerCore::Next(uint32_t slot) const {
  PS_CHECK(slot < options_.depth);
  return stage_.in_step ? NextOfRounds() : NextOfUnits(slot);
}

size_t WorkerCore::Ahead(uint32_t slot) const {
  return static_cast<size_t>(std::ranges::find(begun_, slot, &Begun::slot) - begun_.begin());
}

uint64_t WorkerCore::BatchesThrough(size_t pushes) const {
  uint64_t batches = 0;
  for (size_t i = 0; i < pushes; ++i) batches += CountOf(begun_[i].batches);
  return batches;
}

BatchRanges WorkerCore::BatchesOfUnits(uint32_t slot) const {
  const size_t ahead = Ahead(slot);
  return ahead < begun_.size() ? begun_[ahead].batches : units_.batches(BatchesThrough(ahead));
}

uint64_t WorkerCore::PushesOfFetch(uint32_t slot) const {
  if (Ahead(slot) < begun_.size()) return pushes_of_fetch_;
  return std::ranges::all_of(slots_[slot], &Held::is_held) ? 1 : pushes_of_fetch_ + 1;
}

Sequence WorkerCore::sequence(ShardId shard, Generation generation) const {
  const std::map<Generation, Sequence>& sequences = sequences_.at(Value(shard));
  const auto found = sequences.find(generation);
  return found == sequences.end() ? Sequence{1} : found->second;
}

void WorkerCore::MeetGeneration(ShardId shard, Generation generation) {
  shown_[Value(shard)] = std::max(shown_[Value(shard)], generation);
  if (generation <= generations_[Value(shard)]) return;
  if (!stage_.in_step) return BeginGeneration(shard, generation);
  for (uint32_t i = 0; i < generations_.size(); ++i) {
    if (generations_[i] < generation) BeginGeneration(ShardId{i}, generation);
  }
}

void WorkerCore::BeginGeneration(ShardId shard, Generation generation) {
  generations_[Value(shard)] = generation;
  if (Value(shard) > 0) return;
  // The batches belong to a round of the generation that is over. They are named again.
  work_.reset();
  is_left_out_ = false;
}

void WorkerCore::EndGeneration(Held& shard, Generation next) {
  shard.is_held = false;
  shard.generation = next;
  shard.version = Version{};
}

bool WorkerCore::Has(ShardId shard, const Slot& slot) const {
  const Held& held = slot[Value(shard)];
  // Without rounds, the shard itself refuses pushes of an earlier generation: the slot may be
  // computing from these weights, and its push is to be answered like any other.
  return held.is_held && (!stage_.in_step || held.generation == generations_[Value(shard)]);
}

Version WorkerCore::NewestOf(const Slot& slot) const {
  Version newest{};
  for (uint32_t i = 0; i < slot.size(); ++i) {
    if (Has(ShardId{i}, slot)) newest = std::max(newest, slot[i].version);
  }
  return newest;
}

std::optional<WorkerCore::Action> WorkerCore::PullWhatIsMissing(const Slot& slot) const {
  const Version newest = NewestOf(slot);
  PullShards missing;
  for (uint32_t i = 0; i < slot.size(); ++i) {
    if (Has(ShardId{i}, slot) || slot[i].is_kept) continue;
    missing.pulls.push_back(PullOf(ShardId{i}, stage_.in_step ? newest : Version{}));
  }
  // Shard 0 names a mini-batch of its open round to each puller. It is asked last, so that it names
  // one of the newest round. If it named one of an older round, the worker would excuse itself from
  // that round to bring shard 0 level with the others, and the mini-batch would never be done.
  if (stage_.in_step && missing.pulls.size() > 1) {
    std::erase_if(missing.pulls, [](const ShardPull& pull) { return pull.shard == ShardId{0}; });
  }
  // Shard 0 says at which clock the worker goes on, and the others are to hear that clock. If they
  // heard an older one, workers could wait for this one there while it waits for them elsewhere.
  const bool names_clock = stage_.releases_unused && !stage_.in_step;
  if (names_clock && missing.pulls.size() > 1 && missing.pulls.front().shard == ShardId{0}) {
    missing.pulls.resize(1);
  }
  if (missing.pulls.empty()) return std::nullopt;
  return missing;
}

std::optional<WorkerCore::Action> WorkerCore::ReleaseWhatIsHeld(const Slot& slot) const {
  ReleaseShards held;
  for (uint32_t i = 0; i < slot.size(); ++i) {
    if (slot[i].is_held) held.shards.push_back(ShardId{i});
  }
  if (!stage_.releases_unused || held.shards.empty()) return std::nullopt;
  return held;
}

std::optional<WorkerCore::Action> WorkerCore::ReleaseAndRest(const Slot& slot) const {
  ReleaseShards told;
  for (uint32_t i = 0; i < slot.size(); ++i) {
    // While other pushes are in flight, the last of them announces the rest.
    const bool has_to_rest = begun_.empty() && is_at_work_[i];
    if (slot[i].is_held || has_to_rest) told.shards.push_back(ShardId{i});
  }
  if (!stage_.releases_unused || told.shards.empty()) return std::nullopt;
  return told;
}

WorkerCore::PullShards WorkerCore::PullsOfPush(uint32_t slot) const {
  PullShards all;
  if (stage_.in_step) return all;
  for (uint32_t i = 0; i < slots_.at(slot).size(); ++i) {
    all.pulls.push_back(PullOf(ShardId{i}, Version{}));
  }
  return all;
}

std::optional<WorkerCore::Action> WorkerCore::ExcuseWhereBehind(bool may_be_last) const {
  const Slot& held = slots_.front();
  const Version newest = NewestOf(held);
  const auto is_behind = [&](uint32_t i) {
    const bool may_stay = may_be_last && held[i].goes_no_further;
    return Has(ShardId{i}, held) && held[i].version < newest && !may_stay;
  };
  Version oldest = newest;
  for (uint32_t i = 0; i < held.size(); ++i) {
    if (is_behind(i)) oldest = std::min(oldest, held[i].version);
  }
  ExcuseShards behind;
  for (uint32_t i = 0; i < held.size(); ++i) {
    if (is_behind(i) && held[i].version == oldest) behind.shards.push_back(ShardId{i});
  }
  if (behind.shards.empty()) return std::nullopt;
  return behind;
}

WorkerCore::Action WorkerCore::NextOfRounds() const {
  if (is_stage_over_) return Finished{};
  // A worker that joins between two updates finds the shards at different versions. The shards
  // behind wait for this worker in a round that the others have closed without it. Excusing the
  // worker there brings them level, unless the run has ended with shards at different versions
  // because no worker was left. The shards furthest behind are excused first. Otherwise two workers
  // could wait for ever, each at one shard for the excuse that the other has yet to send to another
  // shard. A shard that gave a worker in a lost one's place a round that is over takes the excuse
  // for late, and answers with the open one. Shard 0 comes after the others, as it may be the last
  // to which others push (Fragments).
  const Slot& held = slots_.front();
  if (const std::optional<Action> pull = PullWhatIsMissing(held)) {
    const bool is_of_first = pull == Action(PullShards{{PullOf(ShardId{0}, NewestOf(held))}});
    const std::optional<Action> excuse = is_of_first ? ExcuseWhereBehind(true) : std::nullopt;
    return excuse.has_value() ? *excuse : *pull;
  }
  const bool is_finished = work_->kind == RoundWork::Kind::kFinished;
  if (std::optional<Action> excuse = ExcuseWhereBehind(is_finished)) return *std::move(excuse);
  switch (work_->kind) {
    case RoundWork::Kind::kCompute:
      return ComputeBatches{{work_->batches}, true};
    case RoundWork::Kind::kExcused: {
      ExcuseShards all;
      for (uint32_t i = 0; i < held.size(); ++i) all.shards.push_back(ShardId{i});
      return all;
    }
    case RoundWork::Kind::kFinished:
      break;
  }
  return Finished{};
}

WorkerCore::Action WorkerCore::NextOfUnits(uint32_t slot) const {
  if (is_spent_[slot]) {
    if (std::optional<Action> release = ReleaseWhatIsHeld(slots_[slot])) return *std::move(release);
  }
  BatchRanges batches = BatchesOfUnits(slot);
  if (batches.empty()) {
    if (std::optional<Action> release = ReleaseAndRest(slots_[slot])) return *std::move(release);
    if (!units_.has_more(BatchesThrough(Ahead(slot)))) return Finished{};
    return AwaitUnit{};
  }
  if (std::optional<Action> pull = PullWhatIsMissing(slots_[slot])) return *std::move(pull);
  return ComputeBatches{std::move(batches), wants_weights(slot)};
}

bool WorkerCore::wants_weights(uint32_t slot) const {
  // The slot's next batches come after those of all other slots.
  const size_t ahead = Ahead(slot);
  const uint64_t quantum = units_.quantum();
  const uint64_t own = ahead < begun_.size() ? CountOf(begun_[ahead].batches) : quantum;
  const uint64_t of_others = (options_.depth - 1) * quantum;
  if (stage_.in_step || options_.keeps_weights) return stage_.in_step;
  if (PushesOfFetch(slot) < options_.pushes_per_fetch) return false;
  return units_.has_more(BatchesThrough(ahead) + own + of_others);
}

WorkerCore::PushTerms WorkerCore::TermsOfPush(ShardId shard, uint32_t slot,
                                              std::optional<bool> pull) {
  PushTerms terms = {.pull = pull.value_or(wants_weights(slot)), .clock = WorkerClock{completed_}};
  if (!pull.has_value()) terms.clock = WorkerClock{completed_ + Ahead(slot) + 1};
  const bool is_newest = begun_.empty() || begun_.back().slot == slot;
  terms.rests = !terms.pull && !stage_.in_step && is_newest &&
                units_.batches(BatchesThrough(begun_.size())).empty();
  terms.leaves_out = is_left_out_;
  if (terms.rests) is_at_work_[Value(shard)] = false;
  return terms;
}

WorkerClock WorkerCore::ClockOfPull(ShardId shard) {
  is_at_work_[Value(shard)] = true;
  return clock_begun();
}

void WorkerCore::OnBatchesBegun(const BatchRanges& batches, uint32_t slot) {
  PS_CHECK(std::holds_alternative<ComputeBatches>(Next(slot)));
  PS_CHECK(stage_.in_step || BatchesOfUnits(slot).front().first == batches.front().first);
  if (const size_t ahead = Ahead(slot); ahead < begun_.size()) {
    begun_[ahead].batches = batches;  // Begun again, after its push was aborted.
    return;
  }
  pushes_of_fetch_ = PushesOfFetch(slot);
  begun_.push_back({slot, batches});
  push_counts_ = false;  // The answers to a release belong to no batch.
  answers_[slot] = {};
}

absl::Status WorkerCore::OnReply(ShardId shard, const PushReply& reply, uint32_t slot) {
  MeetGeneration(shard, reply.generation);
  const PushVerdict verdict = Judge(reply.outcome);
  switch (verdict) {
    case PushVerdict::kTaken:
      // A later generation may have shown itself while the answer was on its way.
      sequences_[Value(shard)][reply.generation] =
          slipstream::Next(sequence(shard, reply.generation));
      push_counts_ = !begun_.empty();
      break;
    case PushVerdict::kPullAgain:
      is_at_work_[Value(shard)] = true;  // The shard ignored a rest that this push announced.
      break;
    case PushVerdict::kSendAgain:
      PS_CHECK(false);
      break;
    case PushVerdict::kGiveUp:
      return Refusal(shard, reply);
  }
  Held& held = slots_.at(slot)[Value(shard)];
  held.is_held = false;
  held.answered_in = reply.generation;
  if (held.generation < reply.generation) EndGeneration(held, reply.generation);
  if (!options_.keeps_weights) {
    held.is_kept = goes_on() && verdict == PushVerdict::kTaken;
  }
  held.was_dropped = FirstOutcome(reply) == PushOutcome::kDroppedLate;
  Answers& answers = answers_[slot];
  answers.counts |= !held.was_dropped && verdict == PushVerdict::kTaken;
  answers.is_dropped |= held.was_dropped;
  return absl::OkStatus();
}

absl::Status WorkerCore::OnRepeatedReply(ShardId shard, const PushReply& reply, uint32_t slot) {
  Held& held = slots_.at(slot).at(Value(shard));
  if (reply.generation <= held.answered_in) return CheckRepeated(shard, reply);
  // The push has counted, and is lost with the end of the generation, like all that others pushed
  // then.
  MeetGeneration(shard, reply.generation);
  EndGeneration(held, reply.generation);
  return absl::OkStatus();
}

absl::Status WorkerCore::OnWeights(ShardId shard, const WeightsHeader& header, uint32_t slot) {
  Held& held = slots_.at(slot).at(Value(shard));
  const std::string name = "shard " + std::to_string(Value(shard));
  if (std::pair(header.generation, header.version) < std::pair(held.generation, held.version)) {
    return absl::AbortedError(name + " went back from version " +
                              std::to_string(Value(held.version)) + " to " +
                              std::to_string(Value(header.version)));
  }
  MeetGeneration(shard, header.generation);
  is_stage_over_ |= stage_.in_step && header.stage > stage_.number;
  if (stage_.in_step && Value(shard) == 0) {
    if (!header.work && !is_stage_over_)
      return absl::InternalError(name + " sent weights without work");
    work_ = header.work;
    is_left_out_ = false;
  }
  held.goes_no_further =
      held.was_dropped && header.version == held.version && header.generation == held.generation;
  held.generation = header.generation;
  held.version = header.version;
  held.stage = header.stage;
  held.is_held = header.stage >= stage_.since;
  held.is_kept = options_.keeps_weights && !stage_.in_step;
  is_spent_[slot] = false;
  if (Value(shard) == 0 && header.clock > clock_begun()) {
    completed_ += Value(header.clock) - Value(clock_begun());
  }
  return absl::OkStatus();
}

void WorkerCore::OnBatchesSkipped(uint32_t slot) {
  PS_CHECK(Ahead(slot) == 0 && !begun_.empty());
  const uint64_t batches = CountOf(begun_.front().batches);
  begun_.erase(begun_.begin());
  if (stage_.in_step) {
    if (!work_.has_value()) return;  // The round has ended with a generation of shard 0.
    work_->kind = RoundWork::Kind::kExcused;
    is_left_out_ = true;
    return;
  }
  units_.Done(batches);
  ++completed_;  // So that nobody waits for the skipped push.
  // A worker that goes on from its own weights starts anew from those of the shards.
  for (Held& shard : slots_[slot]) shard.is_kept = false;
  // Others may have published newer weights in the meantime: with the old ones the next batch would
  // probably not be finite either.
  if (stage_.releases_unused) {
    is_spent_[slot] = true;
  } else {
    for (Held& shard : slots_[slot]) shard.is_held = false;
  }
}

void WorkerCore::OnBatchesDone(uint32_t slot) {
  PS_CHECK(Ahead(slot) == 0 && !begun_.empty());
  const uint64_t batches = CountOf(begun_.front().batches);
  begun_.erase(begun_.begin());
  // Pushes begun after these cannot take their place in the order any more.
  const bool is_done = std::exchange(push_counts_, false) || options_.depth > 1;
  if (!stage_.in_step && is_done) units_.Done(batches);
  if (is_done) ++completed_;
  if (answers_[slot].counts && answers_[slot].is_dropped) ++split_pushes_;
}

}  // namespace slipstream
