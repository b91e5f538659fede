#include "server/core/unknown_members.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(UnknownMembersTest, OnlyAnAnswerToAQuestionAskedLaterTells) {
  UnknownMembers unknown;
  unknown.OnAsked();
  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{9}));

  unknown.OnAnswered();
  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{9})) << "what was asked before may not have it";
  unknown.OnAsked();
  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{9}));
  unknown.OnAnswered();

  EXPECT_TRUE(unknown.IsMadeUp(Incarnation{9}));
  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{10})) << "it is heard of for the first time";
}

TEST(UnknownMembersTest, AQuestionThatFailedTellsNothing) {
  UnknownMembers unknown;
  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{9}));
  unknown.OnAsked();  // The question is not answered.
  unknown.OnAsked();
  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{9}));
  unknown.OnAnswered();
  EXPECT_TRUE(unknown.IsMadeUp(Incarnation{9}));
}

TEST(UnknownMembersTest, RemembersSoMany) {
  UnknownMembers unknown;
  for (uint64_t i = 0; i <= UnknownMembers::kMost; ++i) unknown.IsMadeUp(Incarnation{100 + i});
  unknown.OnAsked();
  unknown.OnAnswered();

  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{100})) << "the one that was forgotten";
  EXPECT_TRUE(unknown.IsMadeUp(Incarnation{100 + UnknownMembers::kMost}));
}

}  // namespace
}  // namespace slipstream
