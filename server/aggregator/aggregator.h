#ifndef SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_H_
#define SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/protocol/shard_messages.h"
#include "common/settings/run_spec.h"
#include "proto/status.pb.h"
#include "server/aggregator/aggregator_pulls.h"
#include "server/aggregator/push_group.h"
#include "server/aggregator/uplink.h"
#include "server/core/orders.h"
#include "server/data_plane/data_plane_engine.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// Combines the pushes of a group of workers to one shard. It keeps nothing that could be lost:
/// whenever a push cannot be combined, or it is not known whether it counts, the push is answered
/// NOT_COMBINED, and its worker sends it to the shard (common/protocol/composite_push.h).
///
/// A PushGroup, which is not thread-safe, decides. Threads, one for each composite on its
/// way, take composites from it, add the gradients up and wait for the shard's answer.
///
/// It also answers the pulls by which its workers follow the shard's versions beside their pushes;
/// all other pulls are refused, and have to go to the shard.
///
/// Thread-safe: guarded by its own mutex, which is held for decisions only. Must outlive the calls
/// that it answers.
class Aggregator final : public DataPlaneEngine {
 public:
  /// The most composites that may be on their way at once. Each has a connection of its own, and a
  /// server lets a member have only so many (Connections::Options); pulls need one, too. There are
  /// more only if the workers hold many different versions. What is beyond is sent back.
  static constexpr uint32_t kUplinksMax = 12;

  struct Options {
    RunSpec run;  // Has a tree.
    ShardId shard{};

    /// The group of workers; below ClusterSpec::groups().
    uint32_t group = 0;

    /// Called with the number of the shard's values, once the model is known. It is called under
    /// the aggregator's lock.
    std::function<void(uint64_t values)> on_model = [](uint64_t) {};

    /// The clock for status and for patience; must not go back.
    std::function<absl::Time()> now = [] { return absl::Now(); };
  };

  Aggregator(Options options, std::unique_ptr<Uplinks> uplinks);

  /// Stops the uplinks. Calls that wait may get no answer; they have to be cancelled.
  ~Aggregator() override;
  Aggregator(const Aggregator&) = delete;
  Aggregator& operator=(const Aggregator&) = delete;

  void OnOrders(const ServerOrders& orders);

  /// Takes the address of the shard's server, which may change. No push is taken before the first.
  void OnUpstream(const std::string& address);

  v1::AggregatorStatus Report();

  BegunPush BeginPush(const PushHeader& header) override;
  std::optional<Answer> FinishPush(PushAssembly push, WaitingCall* call) override;
  std::optional<Answer> Refuse(PushReply refusal, WaitingCall* /*call*/) override {
    return Answer{.push = std::move(refusal)};
  }
  void AbandonPush(PushAssembly& push) override;
  bool Cancel(WaitingCall* call) override;
  void OnCallGone(WaitingCall* call) override;
  void ShareVersions() override;

  /// FAILED_PRECONDITION if the pull has to go to the shard; UNAVAILABLE while the aggregator does
  /// not know its shard.
  std::optional<Answer> Pull(const PullRequest& request, WaitingCall* call) override;
  void FinishPull(WaitingCall* call, const Reader& reader) override;

  std::optional<WeightsTrailer> TrailerOf(const Answer&) override { return std::nullopt; }

  /// Readers who are not members pull from the shard.
  bool ReadersWait() override { return false; }

  // The status of an aggregator has no such figures.
  void CountPushed(uint64_t, uint64_t) override {}
  void CountPulled(const Answer&, Encoding, const VersionChanges::Parts&) override {}

  bool MayBeMember(const Identity& identity) override;
  uint64_t RunNumber() override;

  /// Returns this aggregator. But BeginPush refuses its pushes.
  ShardId AggregatorOf(WorkerId worker) const override;
  absl::Time now() const override { return options_.now(); }

 private:
  /// One thread is always free to watch the time, and to send back.
  static constexpr size_t kThreadsMax = kUplinksMax + 1;

  /// Returns what the aggregator lacks for its work; empty if nothing.
  std::string_view Lack() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Returns whether a pull is one of those that need not go to the shard.
  bool Serves(const PullRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::shared_ptr<BufferPool> Pool();

  /// Has a thread look for a composite, and makes the thread if none is idle.
  void WakeThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunThread();
  std::unique_ptr<Uplink> MakeUplink();

  /// Sends a composite. Sets `weights` to a buffer that holds those of the answer, if there are
  /// any.
  absl::StatusOr<ExchangeAnswer> Exchange(PushGroup::Outgoing& composite,
                                          std::shared_ptr<FloatBuffer>& weights,
                                          std::unique_ptr<Uplink>& uplink);
  void Send(PushGroup::Outgoing composite, std::unique_ptr<Uplink>& uplink);
  void NoteReached(const absl::Status& status);
  absl::StatusOr<GroupPulls::Fetched> Fetch(const GroupPulls::Asked& pull);

  // Constant after construction.
  const Options options_;
  const std::unique_ptr<Uplinks> uplinks_;

  Mutex mutex_;
  CondVar work_came_;
  PushGroup group_ ABSL_GUARDED_BY(mutex_);
  std::string upstream_ ABSL_GUARDED_BY(mutex_);  // Empty while it is unknown.

  // Set once, when the model is known; null before, and if there is no memory for it. The pool is
  // thread-safe.
  std::shared_ptr<BufferPool> pool_ ABSL_GUARDED_BY(mutex_);
  bool shares_versions_ ABSL_GUARDED_BY(mutex_) = false;

  bool is_reached_ ABSL_GUARDED_BY(mutex_) = true;  // For the log.

  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t idle_threads_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<Uplink> pull_uplink_;  // Used by the thread of `pulls_`, and made there.
  AggregatorPulls pulls_;                // Last: its thread uses everything above.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_H_
