#include "worker/client/subscription.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/check.h"
#include "common/kernels/values_checksum.h"
#include "common/log/log.h"
#include "common/process/exit_code.h"
#include "common/process/steady_time.h"
#include "common/process/version.h"
#include "common/wire/chunk_bytes.h"
#include "common/wire/control_wire.h"
#include "worker/client/joining.h"

namespace slipstream {
namespace {

constexpr absl::Duration kAskAgain = absl::Milliseconds(200);

// Servers bound the calls of connections that are no member's, see server/listen/connections.h. A
// reader stays below these bounds. One that is on the servers' machine reaches shards by local
// sockets, which have none.
constexpr absl::Duration kReportsApart = absl::Milliseconds(200);
constexpr absl::Duration kPullsApart = absl::Milliseconds(100);

/// A reader that loses one state after another asks, after so many, whether the run is over.
constexpr int kTriesInARow = 3;

/// Returns the end of the run as a failure, if it failed.
absl::Status FailureOf(const v1::FollowReply& reply) {
  if (reply.phase() != v1::FAILED) return absl::OkStatus();
  return RunFailedError("the run failed: " + reply.failure());
}

}  // namespace

Subscription::Subscription(Options options, Sleeper sleeper, CancelSwitch& cancel)
    : options_(std::move(options)),
      sleeper_(std::move(sleeper)),
      cancel_(cancel),
      coordinator_(options_.coordinator, {.credentials = options_.credentials}, sleeper_) {
  std::random_device device;
  instance_ = (uint64_t{device()} << 32 | device()) | 1;
  report_.set_instance(instance_);
  report_.set_protocol(kProtocol);
  report_.set_host(HostName());
  report_.set_name(options_.name);
  if (options_.lag_max.has_value()) report_.set_lag_max(*options_.lag_max);
}

Subscription::~Subscription() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    report_.set_leaves(true);
  }
  changed_.NotifyAll();
  if (reports_.joinable()) reports_.join();
  MutexLock lock(mutex_);
  if (!is_listed_) return;
  // A reader that the coordinator does not hear from ends with its lease.
  (void)coordinator_.FollowOnce(report_);
}

absl::Status Subscription::Connect() {
  {
    MutexLock lock(mutex_);
    report_.set_wants_model(true);
  }
  v1::FollowReply reply;
  if (absl::Status status = Await(reply); !status.ok()) return status;
  absl::StatusOr<TensorLayout> layout = FromWire(reply.layout());
  if (!layout.ok()) return layout.status();
  layout_ = *std::move(layout);
  absl::StatusOr<ShardMap> map = FromWire(reply.shard_map(), layout_);
  if (!map.ok()) return map.status();
  map_ = *std::move(map);
  if (static_cast<uint32_t>(reply.servers_size()) != map_.shards()) {
    return absl::InternalError("the coordinator names other shards than servers");
  }
  first_ = Version{reply.first_version()};
  run_ = reply.run();
  lease_ = absl::Milliseconds(reply.lease_ms());
  ShardOptions options;
  options.chunk_bytes = ChunkBytes(0, map_, Encoding::kFp32);
  options.retry.give_up_after = MembersPatience(lease_);
  options.channel.credentials = options_.credentials;
  options.channel.addresses = &servers_;
  {
    MutexLock lock(mutex_);
    report_.set_wants_model(false);
    options.seed = instance_;
  }
  shards_ = std::make_unique<ShardGroup>(
      std::vector<std::string>{reply.servers().begin(), reply.servers().end()}, map_, options,
      sleeper_, cancel_);
  began_ = SteadyNow();
  reports_ = std::thread([this] { RunReports(); });
  return absl::OkStatus();
}

absl::Status Subscription::Await(v1::FollowReply& reply) {
  for (bool is_first = true;; is_first = false) {
    absl::StatusOr<v1::FollowReply> told = Tell();
    if (!told.ok()) return told.status();
    reply = *std::move(told);
    if (absl::Status failed = FailureOf(reply); !failed.ok()) return failed;
    if (reply.servers_size() > 0) return absl::OkStatus();
    if (is_first) LogInfo("waiting", {{"for", "a worker that names the model"}});
    if (!sleeper_(kAskAgain)) return absl::CancelledError("stopped");
  }
}

absl::StatusOr<v1::FollowReply> Subscription::Tell() {
  v1::FollowRequest report;
  {
    MutexLock lock(mutex_);
    report = report_;
  }
  absl::StatusOr<v1::FollowReply> reply = coordinator_.Follow(report);
  if (reply.ok()) Hear(*reply);
  return reply;
}

void Subscription::Hear(const v1::FollowReply& reply) {
  {
    MutexLock lock(mutex_);
    is_listed_ = true;
    phase_ = reply.phase();
    is_replaced_ |= run_ != 0 && reply.run() != run_;
    if (is_replaced_) {
      cancel_.Throw();
      return;
    }
  }
  servers_.Note({reply.servers().begin(), reply.servers().end()});
}

absl::Status Subscription::Cause(const absl::Status& status) {
  MutexLock lock(mutex_);
  if (!is_replaced_) return status;
  return absl::AbortedError("the servers have another run now: subscribe again");
}

void Subscription::RunReports() {
  const auto interval = absl::ToChronoNanoseconds(lease_ / 3);
  const auto pause = absl::ToChronoNanoseconds(kReportsApart);
  for (auto last = std::chrono::steady_clock::now();;) {
    v1::FollowRequest report;
    {
      MutexLock lock(mutex_);
      while (!is_stopping_ && !has_news_ && changed_.WaitUntil(mutex_, last + interval)) {
      }
      while (!is_stopping_ && changed_.WaitUntil(mutex_, last + pause)) {
      }
      if (is_stopping_) return;
      has_news_ = false;
      report = report_;
    }
    // Pulls find out whether the servers are there.
    if (const auto reply = coordinator_.FollowOnce(report); reply.ok()) Hear(*reply);
    last = std::chrono::steady_clock::now();
  }
}

absl::Status Subscription::AwaitTurn() {
  const absl::Duration wait = next_pull_ - SteadyNow();
  if (wait > absl::ZeroDuration() && !sleeper_(wait)) return absl::CancelledError("stopped");
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Subscription::State>> Subscription::Next(std::span<float> weights,
                                                                      std::span<const float> held) {
  PS_CHECK(weights.size() == layout_.parameters());
  PS_CHECK(held.empty() || held.size() == weights.size());
  Memory memory = {weights, held_.empty() ? std::span<const float>() : held};
  Parts parts;
  bool was_over = false;
  for (int tries = 1;; ++tries) {
    if (absl::Status turn = AwaitTurn(); !turn.ok()) return turn;
    absl::Status status = Take(memory, parts);
    if (!parts.are_local) next_pull_ = SteadyNow() + kPullsApart;
    if (status.ok()) status = parts.mismatch;
    if (absl::IsDataLoss(status) && !memory.held.empty()) {
      LogWarning("the values of the last state were changed, so that the next is read whole");
      memory.held = {};
      continue;
    }
    if (absl::IsUnavailable(status) && HasFinished()) return std::optional<State>();
    if (!status.ok()) return Cause(status);
    if (!parts.has_lagged && IsNews(parts.headers.front())) break;
    if (parts.has_lagged) {
      MutexLock lock(mutex_);
      report_.set_lost(report_.lost() + 1);
    }
    // A state may never be whole: its publisher died before all shards had it.
    if (parts.has_lagged && tries % kTriesInARow > 0) continue;
    const absl::StatusOr<bool> is_over = IsOver();
    if (!is_over.ok()) return is_over.status();
    // Once the run is over nothing is published any more, and a state that is there can be had.
    if (*is_over && (was_over || !parts.has_lagged)) return std::optional<State>();
    was_over = *is_over;
  }
  State state = {.stamp = parts.headers.front().stamp, .label = parts.headers.front().label};
  held_.clear();
  for (const WeightsHeader& header : parts.headers) {
    state.versions.push_back(header.version);
    held_.push_back(Of(header));
  }
  state.examples = std::ranges::min(parts.headers, {}, &WeightsHeader::examples).examples;
  const uint64_t held_version = Value(state.versions.front());
  const uint64_t newest = Value(parts.newest.front());
  state.lag = newest - std::min(newest, held_version);
  {
    MutexLock lock(mutex_);
    report_.set_held_version(held_version);
    report_.set_label(state.label);
    report_.set_newest_version(newest);
    report_.set_taken(report_.taken() + 1);
    report_.set_bytes(report_.bytes() + parts.bytes);
    const double seconds = absl::ToDoubleSeconds(SteadyNow() - began_);
    report_.set_bytes_per_second(static_cast<double>(report_.bytes()) / std::max(seconds, 1e-3));
    report_.set_lag_sum(report_.lag_sum() + state.lag);
    report_.set_lag_highest(std::max(report_.lag_highest(), state.lag));
    has_news_ = true;
  }
  changed_.NotifyAll();
  return std::optional<State>(std::move(state));
}

/// Tells the lanes of the other shards which state shard 0 answers with.
class Subscription::Turn {
 public:
  /// `first`: the header of shard 0's weights; nothing if the others have nothing to pull.
  void Set(const std::optional<WeightsHeader>& first) {
    MutexLock lock(mutex_);
    if (is_set_) return;
    is_set_ = true;
    first_ = first;
    is_set_now_.NotifyAll();
  }

  /// Waits until it is known.
  std::optional<WeightsHeader> Await() {
    MutexLock lock(mutex_);
    while (!is_set_) is_set_now_.Wait(mutex_);
    return first_;
  }

 private:
  Mutex mutex_;
  CondVar is_set_now_;
  bool is_set_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<WeightsHeader> first_ ABSL_GUARDED_BY(mutex_);
};

namespace {

/// Returns whether weights are those of a round, as shards have them that are in step.
bool IsOfRound(const WeightsHeader& header) {
  return header.stamp.has_value() && header.stamp->publisher == Incarnation{};
}

}  // namespace

absl::Status Subscription::Take(const Memory& memory, Parts& parts) {
  parts.headers.assign(map_.shards(), {});
  parts.newest.assign(map_.shards(), {});
  parts.has_lagged = false;
  parts.are_local = true;
  parts.mismatch = absl::OkStatus();
  Turn turn;
  Mutex mutex;
  const absl::Status status = shards_->Run(shards_->all(), [&](ShardClient& shard) {
    const bool is_first = shard.shard() == ShardId{0};
    std::optional<WeightsHeader> first;
    if (!is_first && !(first = turn.Await()).has_value()) return absl::OkStatus();
    const absl::Status pulled =
        Pull(shard, first.has_value() ? &*first : nullptr, memory, turn, mutex, parts);
    // If no header with news has come, the others have no work.
    if (is_first) turn.Set(std::nullopt);
    return pulled;
  });
  const WeightsHeader& first = parts.headers.front();
  if (!first.stamp.has_value() || !IsNews(first)) return status;
  // A call of shard 0 that was repeated may have brought a newer state than the others were asked
  // for.
  parts.has_lagged |= std::ranges::any_of(parts.headers, [&first](const WeightsHeader& header) {
    // Rounds have the same numbers again in a later generation.
    return header.stamp != first.stamp ||
           (IsOfRound(first) && header.generation != first.generation);
  });
  return status;
}

PullRequest Subscription::RequestFor(ShardId shard, const WeightsHeader* first,
                                     const Memory& memory) const {
  PullRequest request = {.shard_map = map_.fingerprint(), .wants_trailer = true};
  const auto [held_generation, held_version] = held_.empty() ? Held() : held_[Value(shard)];
  request.min_generation = held_generation;
  if (first == nullptr) {
    request.min_version = held_.empty() ? first_ : slipstream::Next(held_version);
    if (options_.lag_max.has_value()) request.reader = instance_;
  } else {
    request.exact = first->stamp;
    if (!held_.empty() && !first->stamp.has_value()) request.min_version = held_version;
    // Shards that are in step begin their generations together.
    if (IsOfRound(*first)) request.min_generation = std::max(held_generation, first->generation);
  }
  const bool is_in_step = request.min_generation == held_generation;
  if (!memory.held.empty() && is_in_step) request.held = held_version;
  return request;
}

absl::Status Subscription::Pull(ShardClient& shard, const WeightsHeader* first,
                                const Memory& memory, Turn& turn, Mutex& mutex, Parts& parts) {
  const size_t number = Value(shard.shard());
  const PullRequest request = RequestFor(shard.shard(), first, memory);
  WeightsArrival arrival = shard.ArrivalOf(memory.weights, nullptr);
  if (request.held.has_value()) {
    arrival.ApplyChangesTo(memory.held.subspan(shard.range().begin, shard.range().size()));
  }
  const auto on_header = [&](const WeightsHeader& header) {
    if (number == 0 && IsNews(header)) turn.Set(header);
  };
  const absl::StatusOr<ShardClient::Pulled> pulled =
      shard.Pull(request, std::move(arrival), on_header);
  const bool is_of_other_run = absl::IsFailedPrecondition(pulled.status()) &&
                               absl::StrContains(pulled.status().message(), "WRONG_SHARD_MAP");
  if (is_of_other_run) {
    return absl::AbortedError("the servers have another run now: subscribe again (" +
                              std::string(pulled.status().message()) + ")");
  }
  const bool has_lagged = absl::IsOutOfRange(pulled.status());
  if (!pulled.ok() && !has_lagged) return pulled.status();
  {
    MutexLock lock(mutex);
    parts.has_lagged |= has_lagged;
    parts.are_local &= shard.is_local();
    if (has_lagged) return absl::OkStatus();
    parts.headers[number] = pulled->header;
    parts.bytes += pulled->bytes;
    if (!pulled->trailer.has_value()) return absl::InternalError("weights without their trailer");
    parts.newest[number] = pulled->trailer->newest;
  }
  const absl::Status intact = CheckTensors(shard, *pulled->trailer, memory.weights);
  MutexLock lock(mutex);
  if (!intact.ok()) parts.mismatch = intact;  // A failure would end all further calls.
  return absl::OkStatus();
}

absl::Status Subscription::CheckTensors(const ShardClient& shard, const WeightsTrailer& trailer,
                                        std::span<const float> weights) const {
  const ParameterRange range = shard.range();
  const std::vector<ParameterRange> tensors = layout_.TensorsWithin(range);
  if (trailer.checksums.empty()) return absl::OkStatus();  // Too many for a message.
  if (trailer.checksums.size() != tensors.size()) {
    return absl::InternalError(
        fmt::format("{} checksums of {} tensors", trailer.checksums.size(), tensors.size()));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t begin = range.begin + tensors[i].begin;
    if (ValuesChecksum(weights.subspan(begin, tensors[i].size())) == trailer.checksums[i]) continue;
    const auto after = std::ranges::upper_bound(layout_.tensors(), begin, {}, &Tensor::offset);
    return absl::DataLossError(fmt::format(
        "the values of {} that came from the shard at {} are not those that it has; take "
        "another version, and report this",
        std::prev(after)->name, shard.address()));
  }
  return absl::OkStatus();
}

bool Subscription::HasFinished() {
  MutexLock lock(mutex_);
  return phase_ == v1::FINISHED;
}

absl::StatusOr<bool> Subscription::IsOver() {
  for (;;) {
    const absl::StatusOr<v1::FollowReply> told = Tell();
    if (absl::IsUnavailable(told.status()) && HasFinished()) return true;
    if (!told.ok()) return Cause(told.status());
    if (absl::Status failed = FailureOf(*told); !failed.ok()) return failed;
    if (told->phase() == v1::FINISHED) return true;
    if (!sleeper_(kAskAgain)) return Cause(absl::CancelledError("stopped"));
    // The next of the run's policies may go on, or the last one has ended for good.
    if (told->phase() <= v1::TRAINING) return false;
  }
}

}  // namespace slipstream
