#include <gtest/gtest.h>
#include <sys/resource.h>

#include "common/process/process_limits.h"

namespace slipstream {
namespace {

TEST(OpenFilesTest, AProcessMayOpenAsManyAsItMayAtAll) {
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlim_t hard = limit.rlim_max;
  limit.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);

  EXPECT_EQ(RaiseOpenFilesLimit(), hard);

  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, hard);
}

}  // namespace
}  // namespace slipstream
