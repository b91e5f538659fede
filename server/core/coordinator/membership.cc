#include "server/core/coordinator/membership.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/duration_text.h"
#include "common/base/limits.h"
#include "common/base/utf8.h"

namespace slipstream {

absl::StatusOr<Membership::Registration> Membership::Register(const Applicant& applicant,
                                                              absl::Time now, uint32_t live_max) {
  const auto& [asked, host, process, instance] = applicant;
  if (host.size() > kHostBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("the name of a host has at most {} bytes, not {}", kHostBytesMax, host.size()));
  }
  const bool is_visible = std::ranges::all_of(host, [](char c) { return c > ' ' && c <= '~'; });
  if (!is_visible) {
    // The name is one of several fields of a log line.
    return absl::InvalidArgumentError("the name of a host is of visible ASCII characters");
  }
  if (asked.has_value() && Value(*asked) >= kWorkersMax) {
    return absl::InvalidArgumentError(
        fmt::format("worker ids are below {}, not {}", kWorkersMax, Value(*asked)));
  }
  if (const std::optional<WorkerId> same = FindInstance(applicant)) {
    Worker& worker = workers_.at(*same);
    worker.last_heard = std::max(worker.last_heard, now);
    return Registration{.worker = *same, .incarnation = worker.incarnation, .is_repeated = true};
  }
  const std::vector<WorkerId> empty = EmptyPlaces();
  const std::optional<WorkerId> free = empty.empty() ? LowestFree() : empty.front();
  const std::optional<WorkerId> id = asked.has_value() ? asked : free;
  if (!id.has_value()) {
    return absl::ResourceExhaustedError(fmt::format("all {} worker ids are taken", kWorkersMax));
  }

  const bool was_live = IsLive(*id);
  const bool was_empty = std::ranges::count(empty, *id) > 0;
  const bool is_new = !was_live && !was_empty;
  if (is_new && live_ + empty.size() >= live_max) {
    return absl::ResourceExhaustedError(fmt::format(
        "the servers have memory for the gradients of {} workers, and {} are there: use more "
        "servers, or wait until one has left",
        live_max, live_ + empty.size()));
  }
  if (workers_.contains(*id) && !again_.Take(now).has_value()) {
    return absl::ResourceExhaustedError(
        "too many workers register again at once: try again in a second");
  }
  const Incarnation older = was_live ? workers_.at(*id).incarnation : Incarnation{};
  if (!was_live) ++live_;
  if (was_empty) --empty_places_;
  const Incarnation incarnation{++last_incarnation_};
  const bool takes_place = keeps_places_ && !is_new;
  none_ends_before_ = std::min(none_ends_before_, now + lease_);
  Worker& worker = workers_[*id];
  worker = {.incarnation = incarnation,
            .state = State::kLive,
            .founding = takes_place,
            .host = host,
            .instance = instance,
            .last_heard = now,
            .failure = "",
            .registrations = worker.registrations + 1,
            .losses = worker.losses};
  RemakeView();
  return Registration{.worker = *id,
                      .incarnation = incarnation,
                      .fenced_older = was_live,
                      .older = older,
                      .takes_place = takes_place};
}

absl::Status Membership::Renew(const Identity& identity, absl::Time now) {
  if (absl::Status live = Check(identity); !live.ok()) return live;
  Worker& worker = workers_.at(identity.worker);
  worker.last_heard = std::max(worker.last_heard, now);
  return absl::OkStatus();
}

void Membership::RenewByPush(WorkerId worker, Incarnation incarnation, WorkerClock clock,
                             absl::Time now) {
  if (!Check({run_, worker, incarnation}).ok()) return;
  Worker& pusher = workers_.at(worker);
  if (clock <= pusher.pushed) return;
  pusher.pushed = clock;
  pusher.last_heard = std::max(pusher.last_heard, now);
}

absl::Status Membership::Check(const Identity& identity) const {
  const uint32_t id = Value(identity.worker);
  if (identity.run != run_) {
    return absl::FailedPreconditionError(
        fmt::format("this is run {:016x}, not {:016x}", run_, identity.run));
  }
  const auto found = workers_.find(identity.worker);
  if (found == workers_.end() || identity.incarnation > found->second.incarnation) {
    return absl::FailedPreconditionError(fmt::format("worker {} is not registered", id));
  }
  const Worker& worker = found->second;
  if (identity.incarnation < worker.incarnation) {
    return absl::FailedPreconditionError(
        fmt::format("worker {} incarnation {} is fenced: {} has been registered since", id,
                    Value(identity.incarnation), Value(worker.incarnation)));
  }
  if (worker.state == State::kLeft) {
    return absl::FailedPreconditionError(fmt::format("worker {} has left", id));
  }
  if (worker.state == State::kDead) {
    return absl::FailedPreconditionError(
        fmt::format("worker {} was given up ({}): register again", id, worker.failure));
  }
  return absl::OkStatus();
}

void Membership::Leave(const Identity& identity, const std::string& failure, absl::Time now) {
  PS_CHECK(Check(identity).ok());
  End(workers_.at(identity.worker), failure.empty() ? State::kLeft : State::kDead, failure, now);
  RemakeView();
}

void Membership::KeepPlaces(bool keeps) {
  keeps_places_ = keeps;
  if (keeps || empty_places_ == 0) return;
  for (auto& [id, worker] : workers_) worker.leaves_place = false;
  empty_places_ = 0;
  RemakeView();
}

void Membership::Forgive(absl::Duration gap, absl::Time now) {
  for (auto& [id, worker] : workers_) {
    worker.last_heard = std::min(now, worker.last_heard + gap);
    worker.place_empty_since = std::min(now, worker.place_empty_since + gap);
  }
}

void Membership::BeginLeases(absl::Time now) {
  for (auto& [id, worker] : workers_) worker.last_heard = worker.place_empty_since = now;
  none_ends_before_ = now + lease_;
}

std::vector<WorkerId> Membership::Expire(absl::Time now) {
  std::vector<WorkerId> died;
  if (now <= none_ends_before_) return died;
  none_ends_before_ = absl::InfiniteFuture();
  for (auto& [id, worker] : workers_) {
    if (worker.state != State::kLive) continue;
    if (now - worker.last_heard <= lease_) {
      none_ends_before_ = std::min(none_ends_before_, worker.last_heard + lease_);
      continue;
    }
    End(worker, State::kDead, "unheard of for more than its lease of " + DurationText(lease_), now);
    died.push_back(id);
  }
  if (!died.empty()) RemakeView();
  return died;
}

void Membership::FoundView() {
  PS_CHECK(Value(view_.number) == 0);
  for (auto& [id, worker] : workers_) worker.founding = worker.state == State::kLive;
  view_.number = ViewNumber{1};
  FillView();
}

void Membership::SkipNumbers(uint64_t count) {
  last_incarnation_ += count;
  view_.number = ViewNumber{Value(view_.number) + count};
}

bool Membership::IsLive(WorkerId worker) const {
  const auto found = workers_.find(worker);
  return found != workers_.end() && found->second.state == State::kLive;
}

std::vector<WorkerId> Membership::EmptyPlaces() const {
  std::vector<WorkerId> empty;
  if (empty_places_ == 0) return empty;
  for (const auto& [id, worker] : workers_) {
    if (worker.leaves_place) empty.push_back(id);
  }
  return empty;
}

std::vector<WorkerId> Membership::LiveWorkers() const {
  std::vector<WorkerId> live;
  for (const auto& [id, worker] : workers_) {
    if (worker.state == State::kLive) live.push_back(id);
  }
  return live;
}

WorkerId Membership::LowestLive() const {
  PS_CHECK(live_ > 0);
  auto worker = workers_.begin();
  while (worker->second.state != State::kLive) ++worker;
  return worker->first;
}

absl::Duration Membership::LeaseLeft(const Worker& worker, absl::Time now) const {
  if (worker.state != State::kLive) return absl::ZeroDuration();
  return std::max(absl::ZeroDuration(), worker.last_heard + lease_ - now);
}

std::optional<WorkerId> Membership::LowestFree() const {
  for (uint32_t id = 0; id < kWorkersMax; ++id) {
    if (!IsLive(WorkerId{id})) return WorkerId{id};
  }
  return std::nullopt;
}

std::optional<WorkerId> Membership::FindInstance(const Applicant& applicant) const {
  if (applicant.instance == 0) return std::nullopt;
  for (const auto& [id, worker] : workers_) {
    const bool is_same = worker.state == State::kLive && worker.instance == applicant.instance;
    if (is_same && applicant.worker.value_or(id) == id) return id;
  }
  return std::nullopt;
}

void Membership::End(Worker& worker, State state, const std::string& failure, absl::Time now) {
  worker.state = state;
  if (state == State::kDead) ++worker.losses;
  worker.leaves_place = keeps_places_;
  worker.place_empty_since = now;
  if (keeps_places_) ++empty_places_;
  // A cut within a character would make the text undecodable for its readers.
  worker.failure = std::string(CutUtf8(failure, kFailureBytesMax));
  --live_;
}

void Membership::RemakeView() {
  if (Value(view_.number) == 0) return;
  view_.number = ViewNumber{Value(view_.number) + 1};
  FillView();
}

void Membership::FillView() {
  view_.members.clear();
  for (const auto& [id, worker] : workers_) {
    if (worker.state == State::kLive || worker.leaves_place) {
      view_.members.push_back({id, worker.incarnation, worker.founding});
    }
  }
}

}  // namespace slipstream
