#include "tests/simulation/sim_units.h"

#include <utility>

#include "proto/coordinator.pb.h"

namespace slipstream {

SimUnits::SimUnits(const SimWorld& world, CoordinatorCalls& calls, const Identity& identity,
                   const std::vector<UnitProgress>& progress,
                   std::function<void(const absl::Status&)> on_result)
    : calls_(calls),
      progress_(progress),
      on_result_(std::move(on_result)),
      asking_(identity, world.scenario.PolicyOf(0), world.scenario.run.training.pipeline_depth) {}

void SimUnits::Ask(const WorkWish& wish) {
  if (is_asking_ || result_.has_value()) return;
  wish_ = wish;
  is_asking_ = true;
  Fetch();
}

std::optional<WorkNews> SimUnits::Take() { return std::exchange(result_, std::nullopt); }

void SimUnits::Fetch() {
  calls_.Call<v1::GetWorkReply>(Method::kGetWork, asking_.Request(progress_, wish_),
                                [this](const absl::StatusOr<v1::GetWorkReply>& reply) {
                                  if (!reply.ok()) return on_result_(reply.status());
                                  absl::StatusOr<std::optional<WorkNews>> news =
                                      asking_.OnReply(*reply, wish_.generation);
                                  if (!news.ok()) return on_result_(news.status());
                                  if (!news->has_value()) {
                                    on_result_(absl::OkStatus());
                                    return Fetch();
                                  }
                                  is_asking_ = false;
                                  result_ = **std::move(news);
                                  on_result_(absl::OkStatus());
                                });
}

}  // namespace slipstream
