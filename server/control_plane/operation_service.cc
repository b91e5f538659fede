#include "server/control_plane/operation_service.h"

#include <utility>

#include "absl/status/status.h"
#include "common/rpc/status_conversion.h"
#include "server/listen/caller.h"

namespace slipstream {

/// One call, which deletes itself when gRPC is done with it.
class OperationService::Call final : public grpc::ServerUnaryReactor {
 public:
  Call(OperationService& service, grpc_call* call, v1::DrainReply* reply)
      : service_(service), caller_(service.connections_, call), reply_(reply) {}

  Caller& caller() { return caller_; }

  void Answer(const v1::DrainReply& result) {
    *reply_ = result;
    Finish(grpc::Status::OK);
  }
  void Refuse(const absl::Status& status) { Finish(ToGrpc(status)); }

 private:
  void OnCancel() override { service_.Cancel(this); }
  void OnDone() override { delete this; }

  OperationService& service_;
  Caller caller_;
  v1::DrainReply* const reply_;  // It belongs to gRPC.
};

grpc::ServerUnaryReactor* OperationService::Drain(grpc::CallbackServerContext* context,
                                                  const v1::DrainRequest*, v1::DrainReply* reply) {
  Call* const call = new Call(*this, context->c_call(), reply);
  if (const absl::Status admitted = Admit(call); !admitted.ok()) call->Refuse(admitted);
  return call;
}

absl::Status OperationService::Admit(Call* call) {
  Caller& caller = call->caller();
  if (absl::Status admitted = caller.Admit(); !admitted.ok()) return admitted;
  caller.IsGuest();
  caller.Audit("drains the server", "an operator has asked for it");
  if (connections_ != nullptr) connections_->audit().Note(*caller.TakeAudit());
  MutexLock lock(mutex_);
  if (has_drained_) return absl::UnavailableError("the server has drained, and ends");
  is_asked_ = true;
  calls_.insert(call);
  return absl::OkStatus();
}

void OperationService::Cancel(Call* call) {
  {
    MutexLock lock(mutex_);
    if (calls_.erase(call) == 0) return;
  }
  call->Refuse(absl::CancelledError("the caller has given up"));
}

bool OperationService::is_asked_to_drain() {
  MutexLock lock(mutex_);
  return is_asked_;
}

void OperationService::OnDrained(const v1::DrainReply& result) {
  std::set<Call*> calls;
  {
    MutexLock lock(mutex_);
    has_drained_ = true;
    calls = std::exchange(calls_, {});
  }
  for (Call* const call : calls) call->Answer(result);
}

}  // namespace slipstream
