#include "common/rpc/status_conversion.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(StatusConversionTest, EveryCodeAndItsMessageSurviveBothWays) {
  for (int code = 0; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");

    const grpc::Status converted = ToGrpc(status);

    EXPECT_EQ(static_cast<int>(converted.error_code()), code);
    EXPECT_EQ(FromGrpc(converted), status);
  }
}

TEST(StatusConversionTest, ACodeThatIsNoneBecomesUnknown) {
  const grpc::Status made_up(static_cast<grpc::StatusCode>(77), "why");

  EXPECT_EQ(FromGrpc(made_up), absl::UnknownError("why"));
}

}  // namespace
}  // namespace slipstream
