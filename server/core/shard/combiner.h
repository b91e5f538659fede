#ifndef SLIPSTREAM_SERVER_CORE_SHARD_COMBINER_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_COMBINER_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// Decides for an aggregator which pushes of its group of workers go to the shard as one, and when.
/// It knows nothing of values, calls and threads.
///
/// A batch goes upward as soon as every worker that is awaited has a push in it. A worker is
/// awaited from when it is given weights to go on with, until its push comes or one of these says
/// that none will come here: it rests, its call broke, it was sent to the shard, it left the view,
/// or the others' patience ended. A worker whose push is on its way up is awaited, too, unless the
/// shard may want the others' pushes before it answers that one: so workers that came apart come
/// together again. The pushes of a batch that can be combined (composite_push.h) make one
/// composite. Where the shard scales each gradient by its staleness, pushes of different versions
/// make several, the oldest version first.
///
/// The group's founding members are awaited from the first view on, too, but no longer once a
/// worker has sent its first push elsewhere: an aggregator that comes while the run trains does not
/// know whose pushes will come here.
///
/// Where a round takes a gradient of each member, members are also awaited from when the shard
/// returns to a checkpoint until each has pushed in its new generation. So the rounds that are made
/// again combine the same pushes as before, if none is without one of the members.
///
/// The answers of a batch are handed on together, so that workers whose versions differed go on
/// with the newest of them, and combine the next time. But what could not be combined, or had
/// counted before, is answered at once, and no answer waits for others when patience has ended: the
/// shard may have to hear again of the workers of one composite before it answers another, for
/// example where a guard holds a round back.
///
/// A worker has at most one push in a batch or on its way up; a later one waits for that one's
/// answer, so that pushes reach the shard in order.
///
/// Not thread-safe: one owner, which serialises calls. Time comes from the caller, and must not go
/// back.
class Combiner {
 public:
  struct Options {
    /// The workers of the group: ids from `first` on, `workers` of them.
    WorkerId first{};
    uint32_t workers = 0;

    /// The policy that the run begins with.
    PolicyTraits policy;

    /// Set if pushes of different versions may be combined: the shard scales them alike.
    bool mixes_versions = false;

    /// Returns the options for a group of a run. REQUIRES: the run has this group.
    static Options For(const RunSpec& run, uint32_t group);
  };

  /// How long a push waits for awaited workers, and an answer for the others of its batch:
  /// kPatience and the time of two steps of the group's median worker, each at its quickest, but
  /// kLongPatience at most. Under policies that take a gradient of each member, kLongPatience: the
  /// shard would wait for the slowest anyway, and the bits of the result depend on which pushes are
  /// combined. The first pushes of founding members are awaited as long.
  static constexpr absl::Duration kPatience = absl::Seconds(1);
  static constexpr absl::Duration kLongPatience = absl::Seconds(30);

  /// The shell's names of pushes and composites. The shell chooses those of pushes.
  enum class PartId : uint64_t {};
  enum class CompositeId : uint64_t {};

  /// Pushes to be combined, in order of worker ids.
  struct Composite {
    CompositeId id{};
    std::vector<PartId> parts;
  };

  /// How a composite was answered.
  struct Verdict {
    /// Set if the shard has counted its parts; otherwise their workers have to send them to the
    /// shard.
    bool is_counted = false;

    /// Set if they had counted before, and this is their first answer again.
    bool is_repeated = false;

    /// Which of its workers have got weights to go on with: one for each part, in the same order.
    /// Empty if it is not counted.
    std::vector<bool> goes_on;
  };

  explicit Combiner(const Options& options);

  /// Notes that the run has come to this policy.
  void SetPolicy(const PolicyTraits& policy) { policy_ = policy; }

  bool IsOfGroup(WorkerId worker) const { return workers_.contains(worker); }

  /// Takes the members of a view. Pushes of workers that are not in it stay; the shard judges them.
  void OnView(const View& view);

  /// Notes that the shard is in this generation, or will be; a push may tell, too. Pushes of an
  /// earlier one leave at once, by themselves: the shard refuses them, and their workers learn of
  /// the new generation.
  void OnGeneration(Generation generation) { generation_ = std::max(generation_, generation); }

  /// Notes that a push with values is complete. `header` is what its worker sent. REQUIRES:
  /// IsOfGroup(worker), and no push has this id.
  void OnPush(PartId part, const PushHeader& header, absl::Time now);

  /// Notes that nobody waits for the answer to this push any more, and that its worker is not
  /// awaited. Returns true if it is in no composite yet; then it is forgotten. Otherwise, it stays
  /// in its composite.
  bool OnGone(PartId part, absl::Time now);

  /// Notes that this worker has no call open here any more, and is not awaited. REQUIRES:
  /// IsOfGroup(worker).
  void OnAway(WorkerId worker);

  /// Returns the next composite to send, in the order in which they have to leave; nothing if there
  /// is none now.
  std::optional<Composite> TakeComposite(absl::Time now);

  /// Returns the composites whose answers are to be handed to their workers now, in order of ids.
  /// They may include others of the same batch, and lack this one until those are answered.
  /// REQUIRES: `composite` was taken and not answered; a verdict that it is counted has one
  /// `goes_on` for each part.
  std::vector<CompositeId> OnAnswer(CompositeId composite, Verdict verdict, absl::Time now);

  /// Returns the composites whose answers have waited long enough for the others of their batch,
  /// and are to be handed to their workers now, in order of ids.
  std::vector<CompositeId> TakeHeld(absl::Time now);

  /// Returns when TakeComposite and TakeHeld are to be called though nothing has happened: when
  /// patience ends. InfiniteFuture if that is not needed.
  absl::Time NextLook() const;

  /// For status: the workers that are awaited while a push waits for them, and since when it does.
  std::vector<WorkerId> WaitingFor() const;
  absl::Time WaitingSince() const;  // InfiniteFuture if nothing waits.

 private:
  /// Where a worker of the group is.
  enum class State : uint8_t {
    kAway,     // It has no push here, and none is awaited.
    kAwaited,  // It has weights, and its push will come.
    kHere,     // Its oldest push is in the open batch.
    kUp,       // Its oldest push is on its way to the shard.
  };
  struct Push {
    PartId id{};
    PushHeader header;
  };
  struct Worker {
    State state = State::kAway;
    absl::Time here_since;      // Set in kHere.
    Incarnation incarnation{};  // The newest that was seen.
    std::deque<Push> pushes;    // The oldest is the one that `state` speaks of.

    /// When it began to compute its next gradient: when it was given weights, or if it asked for
    /// none, when its last push came. And its quickest step since, infinite before the first:
    /// others' waiting does not make it longer.
    absl::Time step_begin;
    absl::Duration step = absl::InfiniteDuration();

    /// Set once a push of any of its processes has come.
    bool has_pushed = false;

    /// The generation of its newest push; or a later one, in which it is not awaited any more.
    Generation generation{};
    bool is_member = false;  // Set if the newest view has it.

    /// Set if it does not wait for an answer here any more, and so will not go on with one.
    bool has_left = false;
  };

  /// A batch that was closed and is not completely answered.
  struct Batch {
    uint32_t unanswered = 0;
    std::vector<CompositeId> held;  // Answered, and waiting for the others.
    absl::Time held_since = absl::InfiniteFuture();
    bool is_late = false;  // Nothing waits for the others any more.
  };
  struct Sent {
    uint64_t batch = 0;
    std::vector<WorkerId> workers;
    Verdict verdict;
  };

  void StopAwaitingFirstPushes();
  bool IsAwaited(const Worker& worker) const;

  /// Returns whether the worker is to push in the shard's new generation, and has not yet.
  bool IsReturning(const Worker& worker) const;

  /// Returns whether the worker's oldest push is of an earlier generation, and whether such a push
  /// is in the open batch.
  bool IsOfEarlierGeneration(const Worker& worker) const;
  bool HoldsEarlierGeneration() const;
  absl::Duration Patience() const;
  bool IsComplete() const;
  void CloseBatch();
  void Send(uint64_t batch, const std::vector<WorkerId>& workers);

  /// Ends the worker's oldest push. Its next push, if it has come, joins the open batch; else the
  /// worker is awaited or not.
  void Finish(Worker& worker, bool goes_on, absl::Time now);

  /// Hands the held answers of a batch on: appends them to `composites`.
  void HandOn(Batch& batch, absl::Time now, std::vector<CompositeId>& composites);
  void FinishAll(CompositeId composite, absl::Time now);

  const bool mixes_versions_;
  PolicyTraits policy_;
  Generation generation_{};
  std::map<WorkerId, Worker> workers_;  // All of the group.
  uint64_t next_ = 1;                   // The number of the next batch or composite.
  std::deque<Composite> ready_;         // Those of closed batches that were not taken.
  std::map<uint64_t, Batch> batches_;
  std::map<CompositeId, Sent> sent_;  // All composites that are not handed on.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_COMBINER_H_
