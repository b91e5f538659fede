#ifndef SLIPSTREAM_SERVER_STATUS_RUN_NEWS_H_
#define SLIPSTREAM_SERVER_STATUS_RUN_NEWS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/status.pb.h"
#include "server/core/coordinator/notes.h"

namespace slipstream {

/// Finds what has happened between two statuses of a run, where no message tells of it: a server
/// falls silent, a worker becomes a straggler, shards refuse pushes in bulk, have saved, or cannot.
///
/// The first report of a shard is no news: it counts from what it has then.
///
/// Not thread-safe: one owner, which serialises calls.
class RunNews {
 public:
  /// More pushes refused in a second than this, over all shards, are news; at most once in
  /// kRefusalsPause for each outcome.
  static constexpr double kRefusalsPerSecond = 10;
  static constexpr absl::Duration kRefusalsPause = absl::Seconds(10);

  /// How long after the news of a checkpoint that of the next one comes at the earliest.
  static constexpr absl::Duration kCheckpointPause = absl::Minutes(1);

  /// A worker that is no straggler for so long is none any more.
  static constexpr absl::Duration kStragglerPause = absl::Seconds(10);

  explicit RunNews(uint32_t shards) : shards_max_(shards) {}

  std::vector<CoordinatorNotes::Note> Update(const v1::RunStatus& status, absl::Time now);

  /// The next checkpoint is news in any case; those that are known now are not.
  void AwaitCheckpoint();

 private:
  struct Shard {
    std::optional<uint64_t> checkpoint;  // Its version, when one was news, or at first.
    std::optional<uint64_t> newest;      // That of the newest.
    std::string failure;                 // Why it could not be saved, when that was news.
    std::map<std::string, uint64_t> outcomes;
  };
  struct Straggler {
    absl::Time since;
    absl::Time last;
  };
  using Notes = std::vector<CoordinatorNotes::Note>;

  void AddServers(const v1::RunStatus& status, absl::Time now, Notes& notes);
  void AddStragglers(const v1::RunStatus& status, absl::Time now, Notes& notes);
  void AddRefusals(const v1::RunStatus& status, absl::Time now, Notes& notes);
  void AddCheckpoints(const v1::RunStatus& status, absl::Time now, Notes& notes);

  // Constant after construction.
  const uint32_t shards_max_;

  std::map<uint32_t, Shard> shards_;
  std::map<uint32_t, absl::Time> silent_;  // The shards, and since when they were known to be.
  std::map<uint32_t, Straggler> stragglers_;
  std::map<std::string, absl::Time> next_refusals_;
  absl::Time next_checkpoint_ = absl::InfinitePast();
  absl::Time updated_ = absl::InfinitePast();
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_RUN_NEWS_H_
