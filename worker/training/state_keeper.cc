#include "worker/training/state_keeper.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/files/whole_file.h"
#include "common/log/log.h"
#include "common/process/steady_time.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

/// Gives way to training on the same cores.
constexpr int kSavingNiceness = 10;

}  // namespace

StateKeeper::StateKeeper(const Options& options, ParameterClient& client, LocalSteps* local)
    : options_(options),
      path_(StatePath(options.directory, options.identity)),
      client_(client),
      local_(local),
      begun_(SteadyNow()) {
  for (const Array& array : Arrays()) {
    PS_CHECK(layout_.Append(array.name, {array.values.size()}).ok());
  }
  values_.resize(layout_.parameters());
  thread_ = std::thread([this] { Run(); });
}

StateKeeper::~StateKeeper() {
  {
    MutexLock lock(mutex_);
    is_closing_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

std::vector<StateKeeper::Array> StateKeeper::Arrays() const {
  std::vector<Array> arrays;
  const std::vector<std::span<float>> errors = client_.encoding_errors();
  const uint32_t shards = client_.map().shards();
  for (size_t i = 0; i < errors.size(); ++i) {
    arrays.push_back({fmt::format("error.slot-{}.shard-{}", i / shards, i % shards), errors[i]});
  }
  if (local_ == nullptr) return arrays;
  if (local_->keeps_weights()) arrays.push_back({"weights", local_->kept_weights()});
  const std::vector<std::span<float>> states = local_->rule_states();
  for (size_t i = 0; i < states.size(); ++i) {
    arrays.push_back({fmt::format("optimizer.{}", i), states[i]});
  }
  return arrays;
}

void StateKeeper::Restore() {
  RemoveAbandonedFiles(fs::path(path_).parent_path());
  const absl::StatusOr<StateMoment> saved = ReadStateFile(path_, options_.owner, layout_, values_);
  if (absl::IsNotFound(saved.status())) {
    return LogInfo("begins without a saved state",
                   {{"reason", saved.status().message()},
                    {"saved_every", absl::FormatDuration(options_.interval)}});
  }
  if (!saved.ok()) {
    return LogWarning("begins without its saved state, which the next save replaces",
                      {{"reason", saved.status().message()}});
  }
  auto from = values_.begin();
  for (const Array& array : Arrays()) {
    const auto end = from + static_cast<ptrdiff_t>(array.values.size());
    std::copy(from, end, array.values.begin());
    from = end;
  }
  if (local_ != nullptr) {
    local_->rule_scalars() = saved->scalars;
    local_->OnRestored();
  }
  steps_before_ = saved->steps;
  LogInfo("goes on with its saved state", {{"step", saved->steps},
                                           {"incarnation", Value(saved->incarnation)},
                                           {"saved", saved->time},
                                           {"path", path_}});
}

bool StateKeeper::is_due() const {
  const bool is_complete = local_ == nullptr || !local_->keeps_weights() || local_->is_started();
  MutexLock lock(mutex_);
  return is_complete && !copied_ && SteadyNow() - begun_ >= options_.interval;
}

void StateKeeper::Save(uint64_t steps) {
  auto to = values_.begin();
  for (const Array& array : Arrays()) to = std::ranges::copy(array.values, to).out;
  StateMoment moment = {
      .steps = steps_before_ + steps,
      .incarnation = options_.identity.incarnation,
      .pushes = {},
      .time = absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone())};
  for (uint32_t i = 0; i < client_.map().shards(); ++i) {
    moment.pushes.push_back(client_.taken_pushes(ShardId{i}));
  }
  if (local_ != nullptr) moment.scalars = local_->rule_scalars();
  MutexLock lock(mutex_);
  PS_CHECK(!copied_);
  begun_ = SteadyNow();
  copied_ = std::move(moment);
  changed_.NotifyAll();
}

void StateKeeper::Run() {
  // On Linux niceness belongs to a thread.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kSavingNiceness);
  for (;;) {
    StateMoment moment;
    {
      MutexLock lock(mutex_);
      while (!is_closing_ && !copied_) changed_.Wait(mutex_);
      if (!copied_) return;
      moment = *copied_;
    }
    Tell(moment, Write(moment));
    MutexLock lock(mutex_);
    copied_.reset();
  }
}

absl::Status StateKeeper::Write(const StateMoment& moment) const {
  const std::string directory = fs::path(path_).parent_path();
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    return absl::DataLossError(fmt::format("cannot make {}: {}", directory, error.message()));
  }
  return WriteStateFile(path_, options_.owner, moment, layout_, values_);
}

void StateKeeper::Tell(const StateMoment& moment, const absl::Status& written) {
  if (has_written_ == written.ok()) return;
  has_written_ = written.ok();
  if (written.ok()) {
    LogInfo("saves its state",
            {{"step", moment.steps}, {"bytes", values_.size() * sizeof(float)}, {"path", path_}});
  } else {
    LogWarning("cannot save its state, and tries again at each interval",
               {{"step", moment.steps}, {"reason", written.message()}});
  }
}

}  // namespace slipstream
