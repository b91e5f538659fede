#include "deploy/lab/virtual_units.h"

#include <utility>

#include "proto/coordinator.pb.h"
#include "server/control_plane/coordinator_messages.h"

namespace slipstream {

VirtualUnits::VirtualUnits(const LabContext& lab, VirtualProcess& process, const Identity& identity,
                           const std::vector<UnitProgress>& progress,
                           std::function<void(const absl::Status&)> on_result)
    : lab_(lab),
      process_(process),
      progress_(progress),
      on_result_(std::move(on_result)),
      asking_(identity, lab.run.StageOf(0).consistency, lab.run.training.pipeline_depth) {}

void VirtualUnits::Ask(const WorkWish& wish) {
  if (is_asking_ || news_.has_value()) return;
  wish_ = wish;
  is_asking_ = true;
  process_.At(process_.now() + lab_.world.network.latency, [this] { Fetch(); });
}

void VirtualUnits::OnCoordinatorChanged() {
  if (std::exchange(waits_, false)) Fetch();
}

void VirtualUnits::Fetch() {
  const v1::GetWorkRequest request = asking_.Request(progress_, wish_);
  v1::GetWorkReply reply;
  absl::Status status = slipstream::Take(lab_.coordinator, request, process_.now());
  if (status.ok()) {
    const auto answer = AnswerTo(lab_.coordinator, request, /*is_last=*/false, reply);
    lab_.on_coordinator_called();
    waits_ = !answer.has_value();
    if (waits_) return on_result_(absl::OkStatus());
    status = *answer;
  }
  if (!status.ok()) return on_result_(status);
  absl::StatusOr<std::optional<WorkNews>> news = asking_.OnReply(reply, wish_.generation);
  if (!news.ok()) return on_result_(news.status());
  if (!news->has_value()) {
    waits_ = true;
    return on_result_(absl::OkStatus());
  }
  process_.At(process_.now() + lab_.world.network.latency, [this, news = **std::move(news)] {
    is_asking_ = false;
    news_ = news;
    on_result_(absl::OkStatus());
  });
}

}  // namespace slipstream
