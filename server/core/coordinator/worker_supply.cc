#include "server/core/coordinator/worker_supply.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/duration_text.h"

namespace slipstream {
namespace {

// How many ids of missing workers a message lists.
constexpr uint32_t kMissingNamedMax = 16;

}  // namespace

WorkerSupply::WorkerSupply(const RunSpec& spec, Membership& members, CoordinatorNotes& notes)
    : to_start_(spec.cluster.workers),
      least_(spec.cluster.min_workers),
      timeout_(spec.cluster.start_timeout),
      waits_for_lost_(spec.cluster.on_worker_loss == ClusterSpec::OnWorkerLoss::kWait),
      has_one_publisher_(RowOf(spec.worker.algorithm).pushes == PushKind::kValues),
      all_reduces_(spec.workers_make_weights()),
      members_(members),
      notes_(notes) {}

absl::StatusOr<Membership::Registration> WorkerSupply::Register(const Applicant& applicant,
                                                                absl::Time now, uint32_t places,
                                                                bool has_begun) {
  if (all_reduces_) {
    // The ids are the places in the sums, and nobody joins those who have begun.
    if (applicant.worker.has_value() && Value(*applicant.worker) >= to_start_) {
      return absl::InvalidArgumentError(
          fmt::format("worker {} is beyond cluster.workers, {}: under allreduce ids count from 0",
                      Value(*applicant.worker), to_start_));
    }
    const uint32_t most = has_begun ? members_.live() : to_start_;
    absl::StatusOr<Membership::Registration> made =
        members_.Register(applicant, now, std::min(places, most));
    if (absl::IsResourceExhausted(made.status()) && most <= places) {
      return absl::ResourceExhaustedError(
          fmt::format("under allreduce a run has the {} workers that it begins with "
                      "(cluster.workers), and nobody joins them",
                      to_start_));
    }
    return made;
  }
  const uint32_t members_max = has_one_publisher_ ? std::min(places, 1u) : places;
  absl::StatusOr<Membership::Registration> made = members_.Register(applicant, now, members_max);
  if (absl::IsResourceExhausted(made.status()) && has_one_publisher_ && places > 0) {
    return absl::ResourceExhaustedError(
        "a run has one publisher, and it is there: wait until it has left, or until its lease is "
        "over");
  }
  return made;
}

std::optional<absl::Time> WorkerSupply::PlacesAwaitedSince(const ConsistencySpec& policy) const {
  std::vector<absl::Time> empty_since;
  for (const WorkerId id : members_.EmptyPlaces()) {
    empty_since.push_back(members_.workers().at(id).place_empty_since);
  }
  std::ranges::sort(empty_since);
  const auto members = static_cast<uint32_t>(members_.view().members.size());
  // Rounds of backup close without some members.
  const uint32_t spare =
      policy.traits().one_per_member ? members - std::min(members, policy.round_size(members)) : 0;
  return spare < empty_since.size() ? std::optional(empty_since[spare]) : std::nullopt;
}

std::optional<std::string> WorkerSupply::WhyNoTraining(const ConsistencySpec& policy,
                                                       absl::Time now) {
  const std::optional<absl::Time> empty = PlacesAwaitedSince(policy);
  if (empty.has_value() && now - *empty > timeout_) {
    const WorkerId lost = members_.EmptyPlaces().front();
    const Membership::Worker& worker = members_.workers().at(lost);
    return fmt::format(
        "worker {} on {} is gone ({}), and no other took its place within {} "
        "(cluster.on_worker_loss wait, cluster.start_timeout)",
        Value(lost), worker.host, worker.failure.empty() ? "it left" : worker.failure,
        DurationText(timeout_));
  }
  // Wait even if all workers have left by themselves: machines are taken away, and come back.
  return Await(least_, "to go on", now);
}

std::optional<std::string> WorkerSupply::WhyNoMeasuring(absl::Time now) {
  return Await(1, "to measure the final weights", now);
}

std::optional<std::string> WorkerSupply::Await(uint32_t least, const char* purpose,
                                               absl::Time now) {
  const uint32_t live = members_.live();
  if (live >= least) {
    lacks_since_.reset();
    return std::nullopt;
  }
  if (!lacks_since_.has_value()) {
    lacks_since_ = now;
    notes_.Add(EventKind::kWorker, true,
               live == 0
                   ? fmt::format("all workers are gone; waiting for one to come back {}", purpose)
                   : "fewer workers than cluster.min_workers are left; waiting for others",
               {{"live", live}, {"at_most_seconds", absl::ToDoubleSeconds(timeout_)}});
  }
  if (now - *lacks_since_ <= timeout_) return std::nullopt;
  const std::string timeout = DurationText(timeout_);
  if (live == 0) {
    return fmt::format("all workers are gone, and none came back within {} {}{}", timeout, purpose,
                       LastWords());
  }
  return fmt::format(
      "{} worker{} left of at least {} (cluster.min_workers), and not enough came within {}{}",
      live, live == 1 ? " is" : "s are", least, timeout, LastWords());
}

std::optional<WorkerSupply::Lack> WorkerSupply::Lacking(bool trains) const {
  const uint32_t least = trains ? least_ : 1;
  if (!lacks_since_.has_value() || members_.live() >= least) return std::nullopt;
  return Lack{.workers = least - members_.live(), .since = *lacks_since_};
}

void WorkerSupply::OnGone(WorkerId worker, bool is_needed) {
  contacts_.erase(worker);
  const bool is_awaited = std::ranges::count(members_.EmptyPlaces(), worker) > 0;
  if (is_awaited) {
    notes_.Add(EventKind::kWorker, true,
               "waiting for another worker in the place of one that is gone",
               {{"worker", Value(worker)}, {"at_most_seconds", absl::ToDoubleSeconds(timeout_)}});
  }
  if (all_reduces_ && is_needed && !lost_.has_value()) lost_ = worker;
}

std::optional<std::string> WorkerSupply::WhyLost() const {
  if (!lost_.has_value()) return std::nullopt;
  const Membership::Worker& worker = members_.workers().at(*lost_);
  return fmt::format(
      "worker {} on {} is gone ({}), and under allreduce every step needs all {} workers; start "
      "the run again, with fewer workers or from saved weights",
      Value(*lost_), worker.host, worker.failure.empty() ? "it left or came anew" : worker.failure,
      to_start_);
}

absl::Status WorkerSupply::Meet(WorkerId worker, const std::string& contact) {
  if (!all_reduces_) {
    return absl::FailedPreconditionError("workers meet only under consistency.policy allreduce");
  }
  if (contact.size() > kContactBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("a contact has at most {} bytes, not {}", kContactBytesMax, contact.size()));
  }
  if (!contact.empty()) contacts_[worker] = contact;
  return absl::OkStatus();
}

absl::StatusOr<std::string> WorkerSupply::ContactOf(WorkerId worker) const {
  if (Value(worker) >= to_start_) {
    return absl::InvalidArgumentError(
        fmt::format("there is no worker {} among {}", Value(worker), to_start_));
  }
  const auto found = contacts_.find(worker);
  return found == contacts_.end() ? std::string() : found->second;
}

std::vector<WorkerId> WorkerSupply::Missing() const {
  std::vector<WorkerId> missing;
  for (uint32_t id = 0; id < to_start_; ++id) {
    if (!members_.IsLive(WorkerId{id})) missing.push_back(WorkerId{id});
  }
  return missing;
}

std::string WorkerSupply::MissingText() const {
  std::string missing;
  uint32_t named = 0;
  for (const WorkerId id : Missing()) {
    if (named++ == kMissingNamedMax) return missing + ", ...";
    missing += (missing.empty() ? "" : ", ") + std::to_string(Value(id));
  }
  return missing.empty() ? "none of the first ids" : "workers " + missing;
}

std::string WorkerSupply::LastWords() const {
  for (const auto& [id, worker] : members_.workers()) {
    if (worker.failure.empty()) continue;
    return fmt::format("; worker {}: {}", Value(id), worker.failure);
  }
  return "";
}

}  // namespace slipstream
