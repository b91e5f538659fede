#include "server/listen/audit_log.h"

#include <gtest/gtest.h>

#include "tests/support/captured_log.h"

namespace slipstream {
namespace {

AuditLog::Event Refusal(const std::string& reason) {
  return {.event = "refused",
          .identity = "slipstream://run/mnist/viewer",
          .peer = "192.0.2.7:41234",
          .method = "/slipstream.v1.Shard/Push",
          .reason = reason};
}

TEST(AuditLogTest, WritesOneLineWithFixedFields) {
  CapturedLog captured;
  AuditLog log;
  log.Note(Refusal("it may\nnot"));
  EXPECT_EQ(captured.Count("audit event=refused identity=slipstream://run/mnist/viewer "
                           "peer=192.0.2.7:41234 method=/slipstream.v1.Shard/Push reason=\"it may "
                           "not\""),
            1);
}

TEST(AuditLogTest, LetsNobodyWriteALineOfItsOwn) {
  CapturedLog captured;
  AuditLog log;
  log.Note(Refusal("x\" audit event=joined identity=\"" + std::string(100'000, 'y')));
  EXPECT_EQ(captured.Count("reason=\"x' audit event=joined identity='yyy"), 1);
  EXPECT_EQ(captured.Count(std::string(300, 'y')), 0);
}

TEST(AuditLogTest, AFloodOfRefusalsHidesNobodyWhoJoins) {
  CapturedLog captured;
  AuditLog log([] { return absl::UnixEpoch(); });
  for (int i = 0; i < 1000; ++i) log.Note(Refusal("flood"));
  log.Note({.event = "joined", .identity = "token", .reason = "worker 3"});
  EXPECT_EQ(captured.Count("event=joined"), 1);
}

TEST(AuditLogTest, LeavesOutLinesOfAFloodAndSaysSo) {
  CapturedLog captured;
  absl::Time now = absl::UnixEpoch();
  AuditLog log([&now] { return now; });
  for (int i = 0; i < 1000; ++i) log.Note(Refusal("flood"));
  EXPECT_EQ(captured.Count("event=refused"), AuditLog::kLinesAtOnce);
  now += absl::Seconds(2);
  log.Note(Refusal("after it"));
  EXPECT_EQ(captured.Count("audit event=left_out lines=900"), 1);
  EXPECT_EQ(captured.Count("after it"), 1);
}

}  // namespace
}  // namespace slipstream
