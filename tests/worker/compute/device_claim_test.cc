#include "worker/compute/device_claim.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace slipstream {
namespace {

/// Returns names of devices that no other process uses.
std::vector<std::string> Names(size_t count) {
  static int tests = 0;
  ++tests;
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    names.push_back(std::to_string(getpid()) + "-" + std::to_string(tests) + "-" +
                    std::to_string(i));
  }
  return names;
}

TEST(DeviceClaimTest, SpreadsProcessesEvenlyWhereverTheyBegin) {
  const std::vector<std::string> names = Names(3);
  std::vector<int> taken(names.size());
  std::vector<std::unique_ptr<DeviceClaim>> claims;
  for (int process = 0; process < 9; ++process) {
    claims.push_back(std::make_unique<DeviceClaim>());
    ++taken[claims.back()->Take(names, 0)];
    for (const int of_device : taken) EXPECT_LE(of_device, process / 3 + 1);
  }
  EXPECT_EQ(taken, (std::vector<int>{3, 3, 3}));
}

TEST(DeviceClaimTest, BeginsWhereItIsTold) {
  const std::vector<std::string> names = Names(2);
  DeviceClaim one;
  DeviceClaim other;

  EXPECT_EQ(one.Take(names, 5), 1u);
  EXPECT_EQ(other.Take(names, 5), 0u);
}

TEST(DeviceClaimTest, WhatIsGivenBackIsTakenNext) {
  const std::vector<std::string> names = Names(2);
  DeviceClaim stays;
  ASSERT_EQ(stays.Take(names, 0), 0u);
  auto ends = std::make_unique<DeviceClaim>();
  ASSERT_EQ(ends->Take(names, 0), 1u);
  ends.reset();

  DeviceClaim next;
  EXPECT_EQ(next.Take(names, 0), 1u);
  EXPECT_EQ(next.Take(names, 0), 1u) << "its own share counts against it";
}

TEST(DeviceClaimTest, WithoutNamesToBeHadItTakesTheFirst) {
  const std::vector<std::string> names = Names(3);
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlim_t before = std::exchange(limit.rlim_cur, 3);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);

  EXPECT_EQ(DeviceClaim().Take(names, 4), 1u);

  limit.rlim_cur = before;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

}  // namespace
}  // namespace slipstream
