#include "worker/member/model_asking.h"

#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"
#include "common/wire/wire_text.h"
#include "worker/member/work_progress.h"

namespace slipstream {
namespace {

/// The most bytes of a failure's message that the coordinator is sent.
constexpr size_t kReasonBytesMax = 1000;

}  // namespace

ModelAsking::ModelAsking(const Identity& identity, const ModelProposal& proposal)
    : layout_(proposal.layout) {
  *request_.mutable_identity() = ToWire(identity);
  *request_.mutable_layout() = ToWire(proposal.layout);
  request_.set_examples(proposal.examples);
  request_.set_data_fingerprint(proposal.data_fingerprint);
  for (const auto& [name, digest] : proposal.frozen) {
    v1::FrozenTensor& frozen = *request_.add_frozen();
    frozen.set_name(name);
    frozen.set_digest(digest);
  }
  if (proposal.can_save.has_value()) request_.set_can_save(*proposal.can_save);
  if (!proposal.saving_failure.empty()) {
    request_.set_saving_failure(WireText(proposal.saving_failure, kReasonBytesMax));
  }
  request_.set_wait_ms(kWaitMilliseconds);
}

absl::StatusOr<std::optional<PreparedModel>> ModelAsking::OnReply(
    const v1::PrepareModelReply& reply) {
  request_.clear_layout();
  request_.clear_frozen();
  request_.clear_can_save();
  request_.clear_saving_failure();
  if (reply.state() == v1::PrepareModelReply::WAIT) return std::nullopt;
  absl::StatusOr<ShardMap> map = FromWire(reply.shard_map(), layout_);
  if (!map.ok()) {
    return absl::InternalError("coordinator: " + std::string(map.status().message()));
  }
  grant_ = reply.state() == v1::PrepareModelReply::GRANTED ? reply.grant() : 0;
  return PreparedModel{*std::move(map), grant_};
}

v1::FinishInitializationRequest ModelAsking::Finish() const {
  v1::FinishInitializationRequest request;
  *request.mutable_identity() = request_.identity();
  request.set_grant(grant_);
  return request;
}

absl::Status ModelAsking::OnInitialized(const absl::Status& status) {
  if (status.ok()) return status;
  const bool may_ask_again = absl::IsFailedPrecondition(status) && grant_ != withdrawn_;
  withdrawn_ = grant_;
  return may_ask_again ? absl::OkStatus() : status;
}

v1::LeaveRequest LeaveRequestOf(const Identity& identity, const std::string& failure, bool ends_run,
                                const std::vector<UnitProgress>& progress) {
  v1::LeaveRequest request;
  *request.mutable_identity() = ToWire(identity);
  if (!failure.empty()) request.set_failure(WireText(failure, kReasonBytesMax));
  *request.mutable_progress() = ToWire(progress);
  request.set_ends_run(ends_run);
  return request;
}

}  // namespace slipstream
