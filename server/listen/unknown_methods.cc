#include "server/listen/unknown_methods.h"

#include "server/listen/caller.h"

namespace slipstream {
namespace {

/// Deletes itself when gRPC is done with it.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const std::string& method) {
    Finish({grpc::StatusCode::UNIMPLEMENTED, "this server has no method " + method});
  }

 private:
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* UnknownMethods::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  const Caller caller(connections_, context->c_call());
  return new Refusal(context->method());
}

}  // namespace slipstream
