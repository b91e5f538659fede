#ifndef SLIPSTREAM_DEPLOY_LAB_VIRTUAL_UNITS_H_
#define SLIPSTREAM_DEPLOY_LAB_VIRTUAL_UNITS_H_

#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "deploy/lab/lab_context.h"
#include "deploy/lab/virtual_process.h"
#include "worker/core/unit_queue.h"
#include "worker/core/work_news.h"
#include "worker/member/work_asking.h"

namespace slipstream {

/// Asks the coordinator for units of work in virtual time, one question at a time. Each way takes
/// the network's latency.
///
/// Not thread-safe: one owner.
class VirtualUnits {
 public:
  /// `progress` is read when a question is asked. `on_result` is called when an answer has come,
  /// and when the coordinator has none for now.
  /// All arguments must outlive the object.
  VirtualUnits(const LabContext& lab, VirtualProcess& process, const Identity& identity,
               const std::vector<UnitProgress>& progress,
               std::function<void(const absl::Status&)> on_result);

  /// Asks, unless a question or an answer is there.
  void Ask(const WorkWish& wish);

  /// Returns the answer that has come.
  std::optional<WorkNews> Take() { return std::exchange(news_, std::nullopt); }

  /// Asks again, if the coordinator has had no answer yet.
  void OnCoordinatorChanged();

 private:
  void Fetch();

  const LabContext& lab_;
  VirtualProcess& process_;
  const std::vector<UnitProgress>& progress_;
  const std::function<void(const absl::Status&)> on_result_;
  WorkAsking asking_;
  WorkWish wish_;
  bool is_asking_ = false;
  bool waits_ = false;  // The coordinator has no answer yet.
  std::optional<WorkNews> news_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_VIRTUAL_UNITS_H_
