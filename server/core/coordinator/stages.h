#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_STAGES_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_STAGES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/settings/run_change.h"
#include "common/settings/run_spec.h"
#include "server/core/run_stages.h"
#include "server/core/saved_version.h"

namespace slipstream {

/// The stages of a run: their list, the present one, and whether the servers know that it has
/// begun.
///
/// Invariant: the run's stages up to the present one stay as they are, but for the epoch with which
/// the present one ends.
///
/// Not thread-safe: one owner, which serialises calls.
class Stages {
 public:
  explicit Stages(const RunSpec& run) : stages_(StagesOf(run)) {}

  const std::vector<RunStage>& all() const { return stages_; }

  /// Returns all stages if a change has made others of them than the settings have; else none.
  const std::vector<RunStage>& changed() const {
    static const std::vector<RunStage> kOfSettings;
    return has_changed_ ? stages_ : kOfSettings;
  }

  /// The place of the stage that the run is in.
  uint32_t at() const { return at_; }
  const RunStage& present() const { return stages_[at_]; }
  const RunStage& next() const { return stages_[at_ + 1]; }

  /// Returns the newest stage up to the present one that did not begin at once: gradients of
  /// weights from that one on count.
  uint32_t Since() const;

  bool works_in_rounds() const {
    return present().consistency.traits().work == PolicyTraits::Work::kRounds;
  }

  /// Whether every server knows that the stage has begun; workers are sent to it from then on.
  bool is_open() const { return is_open_; }

  /// Set while no work is handed out: until the stage is open, unless all stages that some server
  /// does not know of began at once.
  bool holds_work() const { return holds_work_; }

  /// The number of the orders by which servers learn that the stage has begun.
  uint64_t announced_by() const { return announced_by_; }

  /// Begins the next stage. `drained`: the version with which the rounds of the present one ended;
  /// nothing if it had none. OnAnnounced follows. REQUIRES: there is a next stage.
  void EnterNext(std::optional<Version> drained);

  /// Has the servers learn again that the stage is on: they went back to an earlier version of it.
  void BeginAgain() { is_open_ = false; }
  void OnAnnounced(uint64_t orders) { announced_by_ = orders; }
  void Open();

  /// Notes that the present stage goes on up to this epoch at least: a change may come to shard 0
  /// when it is beyond the epoch that the stage was to end with.
  void ExtendTo(uint32_t epoch);

  /// Returns whether the run, in its present stage, can go on from a version of its shards.
  bool CanGoOnFrom(const SavedVersion& from) const;

  /// Changes the stages to come, as WithChange. RESOURCE_EXHAUSTED if there would be too many.
  absl::Status Change(const RunChange& change, bool begins_at_once, uint32_t until_epoch);

  /// Returns whether the present stage and all later ones have what the change asks for.
  bool Have(const RunChange& change) const {
    return WithChange(stages_, at_, change, /*begins_at_once=*/true, 0) == stages_;
  }

  /// Returns why the change can be made at no point of a run in the present stage.
  absl::Status RefuseChange(const RunChange& change) const;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.stages_, self.has_changed_, self.at_, self.is_open_, self.holds_work_,
            self.begins_with_, self.announced_by_);
  }

 private:
  std::vector<RunStage> stages_;
  bool has_changed_ = false;
  uint32_t at_ = 0;
  bool is_open_ = true;
  bool holds_work_ = false;

  // The last version of the stage before, where that had rounds and drained. Else empty.
  std::optional<Version> begins_with_;
  uint64_t announced_by_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_STAGES_H_
