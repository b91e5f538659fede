#include "server/core/shard/combiner.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/base/check.h"
#include "common/protocol/composite_push.h"

namespace slipstream {
namespace {

/// Returns whether the shard multiplies each gradient by a factor that its staleness gives.
bool ScalesGradients(const RunSpec& run) {
  const bool by_guard = std::ranges::any_of(run.stages(), [](const PolicyStage& stage) {
    return stage.consistency.max_staleness.action == StalenessGuardSpec::Action::kScale;
  });
  return by_guard || RowOf(run.optimizer.staleness_scaling).scales_gradients;
}

}  // namespace

Combiner::Options Combiner::Options::For(const RunSpec& run, uint32_t group) {
  const ClusterSpec& cluster = run.cluster;
  const uint32_t first = group * cluster.tree.fanout;
  return {.first = WorkerId{first},
          .workers = std::min(cluster.tree.fanout, cluster.workers - first),
          .policy = run.stages().front().consistency.traits(),
          .mixes_versions = !ScalesGradients(run)};
}

Combiner::Combiner(const Options& options)
    : mixes_versions_(options.mixes_versions), policy_(options.policy) {
  for (uint32_t i = 0; i < options.workers; ++i) {
    workers_.try_emplace(WorkerId{Value(options.first) + i});
  }
}

// Events.

void Combiner::OnView(const View& view) {
  for (auto& [id, worker] : workers_) {
    const Member* const member = view.Find(id);
    const bool is_new = worker.incarnation == Incarnation{};
    const bool is_gone = member == nullptr || member->incarnation > worker.incarnation;
    if (is_gone && worker.state == State::kAwaited) worker.state = State::kAway;
    if (is_gone) worker.has_left = true;
    worker.is_member = member != nullptr;
    if (member == nullptr) continue;
    worker.incarnation = std::max(worker.incarnation, member->incarnation);
    if (is_new && member->founding) worker.state = State::kAwaited;
  }
}

void Combiner::OnPush(PartId part, const PushHeader& header, absl::Time now) {
  Worker& worker = workers_.at(header.identity.worker);
  worker.incarnation = std::max(worker.incarnation, header.identity.incarnation);
  worker.has_left = false;
  OnGeneration(header.generation);
  worker.generation = std::max(worker.generation, header.generation);
  if (worker.has_pushed) worker.step = std::min(worker.step, now - worker.step_begin);
  worker.step_begin = now;
  const bool is_first_here = !std::exchange(worker.has_pushed, true);
  if (is_first_here && header.sequence > Sequence{1}) StopAwaitingFirstPushes();
  worker.pushes.push_back({part, header});
  if (worker.pushes.size() > 1) return;
  worker.state = State::kHere;
  worker.here_since = now;
}

void Combiner::StopAwaitingFirstPushes() {
  for (auto& [id, worker] : workers_) {
    if (worker.state == State::kAwaited && !worker.has_pushed) worker.state = State::kAway;
  }
}

bool Combiner::OnGone(PartId part, absl::Time now) {
  for (auto& [id, worker] : workers_) {
    const auto push = std::ranges::find(worker.pushes, part, &Push::id);
    if (push == worker.pushes.end()) continue;
    worker.has_left = true;
    const bool is_oldest = push == worker.pushes.begin();
    if (is_oldest && worker.state == State::kUp) return false;
    if (is_oldest) {
      Finish(worker, /*goes_on=*/false, now);
    } else {
      worker.pushes.erase(push);
    }
    return true;
  }
  return false;
}

void Combiner::OnAway(WorkerId id) {
  Worker& worker = workers_.at(id);
  worker.has_left = true;
  if (worker.state == State::kAwaited) worker.state = State::kAway;
}

void Combiner::Finish(Worker& worker, bool goes_on, absl::Time now) {
  const PushHeader ended = std::move(worker.pushes.front().header);
  worker.pushes.pop_front();
  if (!worker.pushes.empty()) {
    worker.state = State::kHere;
    worker.here_since = now;
    return;
  }
  const bool is_newest_process = ended.identity.incarnation == worker.incarnation;
  const bool is_awaited = goes_on && !ended.rests && !worker.has_left && is_newest_process;
  worker.state = is_awaited ? State::kAwaited : State::kAway;
  if (ended.pull) worker.step_begin = now;
}

// Composites.

bool Combiner::IsReturning(const Worker& worker) const {
  if (!policy_.one_per_member || !worker.is_member || !worker.has_pushed) return false;
  // Behind a push of an earlier generation, that of the new one may wait already.
  return worker.generation < generation_ || IsOfEarlierGeneration(worker);
}

bool Combiner::IsAwaited(const Worker& worker) const {
  if (worker.state == State::kAwaited || IsReturning(worker)) return true;
  // A shard that waits for members may wait for the pushes here before it answers.
  if (worker.state != State::kUp || policy_.waits_for_members) return false;
  return !worker.has_left && !worker.pushes.front().header.rests;
}

bool Combiner::IsOfEarlierGeneration(const Worker& worker) const {
  return !worker.pushes.empty() && worker.pushes.front().header.generation < generation_;
}

bool Combiner::HoldsEarlierGeneration() const {
  return std::ranges::any_of(workers_, [this](const auto& entry) {
    return entry.second.state == State::kHere && IsOfEarlierGeneration(entry.second);
  });
}

bool Combiner::IsComplete() const {
  return std::ranges::none_of(workers_,
                              [this](const auto& entry) { return IsAwaited(entry.second); });
}

absl::Duration Combiner::Patience() const {
  bool awaits_first = false;
  std::vector<absl::Duration> steps;
  for (const auto& [id, worker] : workers_) {
    awaits_first = awaits_first || (worker.state == State::kAwaited && !worker.has_pushed);
    if (worker.step < absl::InfiniteDuration()) steps.push_back(worker.step);
  }
  if (policy_.one_per_member || awaits_first) return kLongPatience;
  if (steps.empty()) return kPatience;
  const auto median = steps.begin() + static_cast<ptrdiff_t>(steps.size() / 2);
  std::ranges::nth_element(steps, median);
  // A step may have been long because there was no work.
  return std::min(kPatience + 2 * *median, kLongPatience);
}

absl::Time Combiner::WaitingSince() const {
  absl::Time since = absl::InfiniteFuture();
  for (const auto& [id, worker] : workers_) {
    if (worker.state == State::kHere) since = std::min(since, worker.here_since);
  }
  return since;
}

std::vector<WorkerId> Combiner::WaitingFor() const {
  std::vector<WorkerId> awaited;
  if (WaitingSince() == absl::InfiniteFuture()) return awaited;
  for (const auto& [id, worker] : workers_) {
    if (IsAwaited(worker)) awaited.push_back(id);
  }
  return awaited;
}

absl::Time Combiner::NextLook() const {
  absl::Time since = IsComplete() ? absl::InfiniteFuture() : WaitingSince();
  for (const auto& [number, batch] : batches_) since = std::min(since, batch.held_since);
  return since + Patience();
}

std::optional<Combiner::Composite> Combiner::TakeComposite(absl::Time now) {
  const absl::Time since = WaitingSince();
  const bool has_push = since != absl::InfiniteFuture();
  const bool may_leave = HoldsEarlierGeneration() || IsComplete();
  if (has_push && (may_leave || now >= since + Patience())) CloseBatch();
  if (ready_.empty()) return std::nullopt;
  Composite composite = std::move(ready_.front());
  ready_.pop_front();
  return composite;
}

void Combiner::CloseBatch() {
  const bool only_earlier = HoldsEarlierGeneration();
  std::vector<std::vector<WorkerId>> groups;
  const auto header = [this](WorkerId id) -> const PushHeader& {
    return workers_.at(id).pushes.front().header;
  };
  for (auto& entry : workers_) {  // Clang 14 captures no structured bindings.
    const WorkerId id = entry.first;
    Worker& worker = entry.second;
    if (only_earlier && !IsOfEarlierGeneration(worker)) continue;
    if (!only_earlier && worker.state == State::kAwaited) worker.state = State::kAway;
    if (!only_earlier && worker.state == State::kAway) worker.generation = generation_;
    if (worker.state != State::kHere) continue;
    worker.state = State::kUp;
    const auto group = std::ranges::find_if(groups, [&](const std::vector<WorkerId>& others) {
      const PushHeader& other = header(others.front());
      return Combine(other, header(id)) && (mixes_versions_ || other.base == header(id).base);
    });
    if (group != groups.end()) {
      group->push_back(id);
    } else {
      groups.push_back({id});
    }
  }
  // The oldest version first, before newer pushes make it staler.
  std::ranges::stable_sort(groups, {}, [&](const std::vector<WorkerId>& group) {
    const PushHeader& first = header(group.front());
    return std::tuple(first.generation, first.base);
  });
  const uint64_t batch = next_++;
  for (const std::vector<WorkerId>& group : groups) Send(batch, group);
}

void Combiner::Send(uint64_t batch, const std::vector<WorkerId>& workers) {
  Composite composite = {.id = CompositeId{next_++}};
  for (const WorkerId id : workers) {
    composite.parts.push_back(workers_.at(id).pushes.front().id);
  }
  ++batches_[batch].unanswered;
  sent_[composite.id] = {.batch = batch, .workers = workers};
  ready_.push_back(std::move(composite));
}

// Answers.

std::vector<Combiner::CompositeId> Combiner::OnAnswer(CompositeId composite, Verdict verdict,
                                                      absl::Time now) {
  Sent& sent = sent_.at(composite);
  PS_CHECK(!verdict.is_counted || verdict.goes_on.size() == sent.workers.size());
  const bool is_news = verdict.is_counted && !verdict.is_repeated;
  sent.verdict = std::move(verdict);
  const auto found = batches_.find(sent.batch);
  Batch& batch = found->second;
  --batch.unanswered;
  std::vector<CompositeId> composites;
  if (is_news) {
    batch.held.push_back(composite);
    batch.held_since = std::min(batch.held_since, now);
  } else {
    FinishAll(composite, now);
    composites.push_back(composite);
  }
  if (batch.unanswered == 0 || batch.is_late) HandOn(batch, now, composites);
  if (batch.unanswered == 0) batches_.erase(found);
  std::ranges::sort(composites);
  return composites;
}

std::vector<Combiner::CompositeId> Combiner::TakeHeld(absl::Time now) {
  std::vector<CompositeId> composites;
  for (auto& [number, batch] : batches_) {
    if (now < batch.held_since + Patience()) continue;
    batch.is_late = true;
    HandOn(batch, now, composites);
  }
  std::ranges::sort(composites);
  return composites;
}

void Combiner::HandOn(Batch& batch, absl::Time now, std::vector<CompositeId>& composites) {
  for (const CompositeId composite : std::exchange(batch.held, {})) {
    FinishAll(composite, now);
    composites.push_back(composite);
  }
  batch.held_since = absl::InfiniteFuture();
}

void Combiner::FinishAll(CompositeId composite, absl::Time now) {
  const Sent sent = std::move(sent_.extract(composite).mapped());
  for (size_t i = 0; i < sent.workers.size(); ++i) {
    const bool goes_on = sent.verdict.is_counted && sent.verdict.goes_on[i];
    Finish(workers_.at(sent.workers[i]), goes_on, now);
  }
}

}  // namespace slipstream
