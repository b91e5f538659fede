#ifndef SLIPSTREAM_COMMON_ALARMS_RUN_ALARMS_H_
#define SLIPSTREAM_COMMON_ALARMS_RUN_ALARMS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/status.pb.h"

namespace slipstream {

/// Beside three intervals, a checkpoint may be so old, as writing a large one takes time.
inline constexpr double kCheckpointWriteSecondsMax = 30;

/// Beyond this, a log is slow: every push waits that long for its answer.
inline constexpr double kLogBatchSecondsMax = 1;

/// The longest usual silence of a server. Servers report several times a second; one that is silent
/// for longer may be unreachable.
inline constexpr double kServerSilenceSecondsMax = 2;

/// A round to which nobody has pushed for longer than this is stalled.
inline constexpr double kRoundStillSecondsMax = 1;

/// Returns a text such as "worker 3 is stalled: it lives, and has neither fetched nor pushed for 40
/// s". REQUIRES: it is.
std::string StalledText(const v1::WorkerStatus& worker);

/// Returns a text such as "; worker 3 has not pushed" about the workers that the run waits for,
/// empty if it waits for none by name.
std::string AwaitedText(const v1::RunStatus& status);

/// The thing that an alarm is about. A run may have several alarms of a kind.
enum class AlarmKind : uint8_t {
  kFailed,
  kStateNotKept,
  kMissing,
  kDead,
  kStalled,
  kStraggler,
  kRoundStill,
  kNonfinite,
  kStart,
  kReturn,
  kCheckpoint,
  kLogSlow,
  kPushLog,
  kSlowdown,
};

/// All kinds, with their names for programs: "failed", "missing" and so on.
std::span<const std::pair<AlarmKind, std::string_view>> AlarmKinds();

struct Alarm {
  enum class Level : uint8_t {
    kNote,
    kWarning,  // The run goes on, but not as well as it could.
    kAlarm,    // Something is lost, or will soon be.
  };
  AlarmKind kind{};
  Level level{};
  std::string text;
};

/// Returns everything that needs somebody's attention, the worst first: a failure, servers,
/// workers and aggregators that the run waits for and when it fails, dead workers and the causes,
/// stalled workers, stragglers, stalled rounds, mini-batches that were left out, shards that began
/// with another checkpoint, went on from one, lack a new one or have a slow log, push logs that end
/// early, and workers that are slowed for a test.
std::vector<Alarm> AlarmsOf(const v1::RunStatus& status);

/// Returns "waiting for server 1 (localhost:7071), silent for 8.02 s, fails in 1m52s". REQUIRES:
/// the status says who is missing.
std::string MissingText(const v1::RunStatus& status);

/// Returns "shard 1 has 2 of 4 gradients, none new for 12.4 s: closes when worker 3 pushes; …".
std::string RoundText(const v1::WaitingRound& round);

/// Returns "workers 1, 2 and 3"; many workers are counted and not named.
std::string WorkersText(const std::vector<uint32_t>& workers);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_ALARMS_RUN_ALARMS_H_
