#include "server/listen/method_roles.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "proto/coordinator.pb.h"
#include "proto/operation.pb.h"
#include "proto/shard.pb.h"

namespace slipstream {
namespace {

/// Returns the roles that may call a method (server, worker, operator, viewer, reader, token) as
/// "swovrt", with '-' for each role that may not.
std::string WhoMay(const std::string& method) {
  std::string who;
  for (const CertifiedRole role :
       {CertifiedRole::kServer, CertifiedRole::kWorker, CertifiedRole::kOperator,
        CertifiedRole::kViewer, CertifiedRole::kReader}) {
    who += MayCall(role, method) ? NameOf(role)[0] : '-';
  }
  return who + (TokenMayCall(method) ? 't' : '-');
}

TEST(MethodRolesTest, EveryMethodNamesItsRoles) {
  const std::map<std::string, std::string> expected = {
      {"slipstream.v1.Coordinator.SyncServer", "s-----"},
      {"slipstream.v1.Coordinator.Register", "-w---t"},
      {"slipstream.v1.Coordinator.PrepareModel", "-w---t"},
      {"slipstream.v1.Coordinator.FinishInitialization", "-w---t"},
      {"slipstream.v1.Coordinator.Meet", "-w---t"},
      {"slipstream.v1.Coordinator.Heartbeat", "-w---t"},
      {"slipstream.v1.Coordinator.GetWork", "-w---t"},
      {"slipstream.v1.Coordinator.Report", "-w---t"},
      {"slipstream.v1.Coordinator.Leave", "-w---t"},
      {"slipstream.v1.Coordinator.EndTraining", "--o--t"},
      {"slipstream.v1.Coordinator.ChangeRun", "--o--t"},
      {"slipstream.v1.Coordinator.SaveCheckpoint", "--o--t"},
      {"slipstream.v1.Coordinator.Follow", "-wo-rt"},
      {"slipstream.v1.Coordinator.GetStatus", "swovrt"},
      {"slipstream.v1.Coordinator.WatchStatus", "swovrt"},
      {"slipstream.v1.Shard.GetTransports", "swo-rt"},
      {"slipstream.v1.Shard.Initialize", "-w---t"},
      {"slipstream.v1.Shard.Pull", "swo-rt"},
      {"slipstream.v1.Shard.Push", "-w---t"},
      {"slipstream.v1.Shard.Exchange", "sw---t"},
      {"slipstream.v1.Operation.Drain", "--o--t"},
  };
  std::map<std::string, std::string> found;
  for (const auto* file :
       {v1::RegisterRequest::descriptor()->file(), v1::PullRequest::descriptor()->file(),
        v1::DrainRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      const auto* service = file->service(i);
      for (int j = 0; j < service->method_count(); ++j) {
        found[std::string(service->method(j)->full_name())] =
            WhoMay("/" + std::string(service->full_name()) + "/" +
                   std::string(service->method(j)->name()));
      }
    }
  }
  EXPECT_EQ(found, expected);
}

TEST(MethodRolesTest, OtherServicesAreForEverybody) {
  EXPECT_EQ(WhoMay("/grpc.health.v1.Health/Check"), "swovrt");
  EXPECT_EQ(WhoMay("/no.such.Service/Method"), "swovrt");
}

TEST(MethodRolesTest, NobodyMayCallWhatTheListLacks) {
  EXPECT_EQ(WhoMay("/slipstream.v1.Shard/NoSuchMethod"), "------");
  EXPECT_EQ(WhoMay("/slipstream.v2.Shard/Push"), "------");
  EXPECT_EQ(WhoMay(""), "------");
}

}  // namespace
}  // namespace slipstream
