#include "server/listen/access.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "common/process/steady_time.h"
#include "common/rpc/secure_credentials.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/steady_deadline.h"
#include "common/rpc/transport_options.h"
#include "proto/coordinator.grpc.pb.h"
#include "tests/support/captured_log.h"
#include "tests/support/credentials.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

/// A service behind the access check: a call that reaches it fails with UNIMPLEMENTED.
class BehindTheDoor final : public v1::Coordinator::Service {};

class AccessTest : public testing::Test {
 protected:
  ~AccessTest() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  void Start(const std::string& token = "") {
    CredentialFiles files = authority_.FilesOf("slipstream://run/mnist/server/0");
    files.token = token;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(
        "127.0.0.1:0",
        MakeServerCredentials(files, std::make_shared<Access>("mnist", token, audit_)), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }

  std::unique_ptr<v1::Coordinator::Stub> StubWith(const CredentialFiles& files) const {
    return v1::Coordinator::NewStub(grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(port_), MakeChannelCredentials(files), ClientArguments()));
  }

  static absl::Status Register(v1::Coordinator::Stub& stub) {
    grpc::ClientContext context;
    context.set_deadline(SteadyDeadline(SteadyNow() + absl::Seconds(30)));
    v1::RegisterReply reply;
    return FromGrpc(stub.Register(&context, v1::RegisterRequest(), &reply));
  }
  absl::Status Register(const CredentialFiles& files) const { return Register(*StubWith(files)); }

  /// Checks that a call with these credentials reaches the service.
  void ExpectServed(const CredentialFiles& files) const {
    EXPECT_EQ(Register(files).code(), absl::StatusCode::kUnimplemented) << Register(files);
  }
  void ExpectRefused(const CredentialFiles& files, absl::StatusCode code,
                     const std::string& reason) const {
    const absl::Status status = Register(files);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(reason));
  }

  CredentialFiles WithoutCertificate(const std::string& token = "") const {
    return {.ca = authority_.Path("ca.crt"), .certificate = "", .key = "", .token = token};
  }

  TestAuthority authority_;
  AuditLog audit_;

 private:
  BehindTheDoor service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(AccessTest, LetsTheRolesOfAMethodIn) {
  CapturedLog log;
  Start();
  ExpectServed(authority_.FilesOf("slipstream://run/mnist/worker/3"));
  ExpectServed(authority_.FilesOf("slipstream://run/mnist/worker/*"));
  EXPECT_EQ(log.Count("audit"), 0);
  for (const char* uri : {"slipstream://run/mnist/viewer", "slipstream://run/mnist/operator",
                          "slipstream://run/mnist/server/1"}) {
    ExpectRefused(authority_.FilesOf(uri), absl::StatusCode::kPermissionDenied,
                  std::string(uri) + " may not call /slipstream.v1.Coordinator/Register");
    EXPECT_EQ(log.Count(std::string("audit event=refused identity=") + uri), 1);
  }
}

TEST_F(AccessTest, RefusesCertificatesOfOtherRuns) {
  Start();
  ExpectRefused(
      authority_.FilesOf("slipstream://run/other/worker/3"), absl::StatusCode::kPermissionDenied,
      "the certificate is for slipstream://run/other/worker/3, and this is the run mnist");
}

TEST_F(AccessTest, ShakesHandsWithNobodyWithoutAValidCertificate) {
  Start();
  ExpectRefused(WithoutCertificate(), absl::StatusCode::kUnavailable, "");
  const Validity over = {.begins = absl::Now() - absl::Hours(2),
                         .ends = absl::Now() - absl::Hours(1)};
  ExpectRefused(authority_.FilesOf("slipstream://run/mnist/worker/3", over),
                absl::StatusCode::kUnavailable, "");
  const Validity later = {.begins = absl::Now() + absl::Hours(1),
                          .ends = absl::Now() + absl::Hours(2)};
  ExpectRefused(authority_.FilesOf("slipstream://run/mnist/worker/3", later),
                absl::StatusCode::kUnavailable, "");
  const TestAuthority other("other");
  CredentialFiles files = other.FilesOf("slipstream://run/mnist/worker/3");
  files.ca = authority_.Path("ca.crt");
  ExpectRefused(files, absl::StatusCode::kUnavailable, "");
  ExpectRefused(CredentialFiles(), absl::StatusCode::kUnavailable, "");
}

TEST_F(AccessTest, ClientsTakeNobodyElseForAServer) {
  Start();
  const TestAuthority other("other");
  CredentialFiles files = authority_.FilesOf("slipstream://run/mnist/worker/3");
  files.ca = other.Path("ca.crt");
  ExpectRefused(files, absl::StatusCode::kUnavailable, "");
}

TEST_F(AccessTest, ATokenStandsForACertificate) {
  const std::string token = authority_.Write("token", "the-token-of-the-run\n");
  Start(token);
  ExpectServed(WithoutCertificate(token));
  ExpectServed(authority_.FilesOf("slipstream://run/mnist/worker/3"));
  ExpectRefused(WithoutCertificate(), absl::StatusCode::kUnauthenticated,
                "neither a certificate of the run nor its token");
  ExpectRefused(WithoutCertificate(authority_.Write("stale", "the-token-of-yesterday\n")),
                absl::StatusCode::kUnauthenticated, "the token is not one of the run's");
  // A token does not extend the rights of a certificate.
  CredentialFiles viewer = authority_.FilesOf("slipstream://run/mnist/viewer");
  viewer.token = token;
  ExpectRefused(viewer, absl::StatusCode::kPermissionDenied, "its role is viewer");
}

TEST_F(AccessTest, ATokenDoesNotMakeAServer) {
  const std::string token = authority_.Write("token", "the-token-of-the-run\n");
  Start(token);
  const auto stub = StubWith(WithoutCertificate(token));
  grpc::ClientContext context;
  context.set_deadline(SteadyDeadline(SteadyNow() + absl::Seconds(30)));
  v1::SyncServerReply reply;
  const absl::Status status = FromGrpc(stub->SyncServer(&context, v1::SyncServerRequest(), &reply));
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
}

// The certificate files are read again every five seconds.
TEST_F(AccessTest, RenewedCertificatesHoldWithoutARestart) {
  Start();
  const Validity over = {.begins = absl::Now() - absl::Hours(2),
                         .ends = absl::Now() - absl::Hours(1)};
  const CredentialFiles files = authority_.FilesOf("slipstream://run/mnist/worker/3", over);
  const auto stub = StubWith(files);
  EXPECT_EQ(Register(*stub).code(), absl::StatusCode::kUnavailable);
  // Write another pair to the same paths.
  EXPECT_EQ(authority_.FilesOf("slipstream://run/mnist/worker/3").certificate, files.certificate);
  const absl::Time deadline = SteadyNow() + absl::Seconds(60);
  absl::Status status;
  do {
    status = Register(*stub);
  } while (absl::IsUnavailable(status) && SteadyNow() < deadline);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

}  // namespace
}  // namespace slipstream
