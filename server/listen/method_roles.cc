#include "server/listen/method_roles.h"

#include <algorithm>
#include <cstdint>

namespace slipstream {
namespace {

constexpr uint8_t Bit(CertifiedRole role) {
  return static_cast<uint8_t>(1 << static_cast<uint8_t>(role));
}

constexpr uint8_t kServer = Bit(CertifiedRole::kServer);
constexpr uint8_t kWorker = Bit(CertifiedRole::kWorker);
constexpr uint8_t kOperator = Bit(CertifiedRole::kOperator);
constexpr uint8_t kViewer = Bit(CertifiedRole::kViewer);
constexpr uint8_t kReader = Bit(CertifiedRole::kReader);
constexpr uint8_t kEverybody = kServer | kWorker | kOperator | kViewer | kReader;

struct MethodRoles {
  std::string_view method;
  uint8_t roles;
};

constexpr std::string_view kOurServices = "/slipstream.";

constexpr MethodRoles kMethods[] = {
    {"/slipstream.v1.Coordinator/SyncServer", kServer},
    {"/slipstream.v1.Coordinator/Register", kWorker},
    {"/slipstream.v1.Coordinator/PrepareModel", kWorker},
    {"/slipstream.v1.Coordinator/FinishInitialization", kWorker},
    {"/slipstream.v1.Coordinator/Meet", kWorker},
    {"/slipstream.v1.Coordinator/Heartbeat", kWorker},
    {"/slipstream.v1.Coordinator/GetWork", kWorker},
    {"/slipstream.v1.Coordinator/Report", kWorker},
    {"/slipstream.v1.Coordinator/Leave", kWorker},
    {"/slipstream.v1.Coordinator/EndTraining", kOperator},
    {"/slipstream.v1.Coordinator/ChangeRun", kOperator},
    {"/slipstream.v1.Coordinator/SaveCheckpoint", kOperator},
    {"/slipstream.v1.Coordinator/Follow", kWorker | kOperator | kReader},
    {"/slipstream.v1.Coordinator/GetStatus", kEverybody},
    {"/slipstream.v1.Coordinator/WatchStatus", kEverybody},
    // Servers introduce themselves with it to the server of shard 0.
    {"/slipstream.v1.Shard/GetTransports", kWorker | kServer | kOperator | kReader},
    {"/slipstream.v1.Shard/Initialize", kWorker},
    // Aggregators pull weights for their workers, and send the pushes of these with Exchange.
    {"/slipstream.v1.Shard/Pull", kWorker | kServer | kOperator | kReader},
    {"/slipstream.v1.Shard/Push", kWorker},
    {"/slipstream.v1.Shard/Exchange", kWorker | kServer},
    {"/slipstream.v1.Operation/Drain", kOperator},
};

bool OneOfMayCall(uint8_t roles, std::string_view method) {
  const bool is_ours = method.starts_with(kOurServices);
  if (!is_ours) return method.starts_with('/');
  const auto* const row = std::ranges::find(kMethods, method, &MethodRoles::method);
  return row != std::end(kMethods) && (row->roles & roles) != 0;
}

}  // namespace

bool MayCall(CertifiedRole role, std::string_view method) {
  return OneOfMayCall(Bit(role), method);
}

bool TokenMayCall(std::string_view method) {
  return OneOfMayCall(kWorker | kOperator | kViewer | kReader, method);
}

}  // namespace slipstream
