#include "common/security/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

class TokenFileTest : public testing::Test {
 protected:
  void Write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  const std::string path_ =
      testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(TokenFileTest, HasOneTokenOnALine) {
  Write("aaaaaaaaaaaaaaaa\r\n\nbbbbbbbbbbbbbbbb");
  EXPECT_THAT(*ReadTokens(path_), ElementsAre("aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"));
  Write("");
  EXPECT_THAT(ReadTokens(path_).status().message(), HasSubstr("holds 0 tokens"));
  Write("aaaaaaaaaaaaaaaa\nwith a blank 123456\n");
  EXPECT_THAT(ReadTokens(path_).status().message(), HasSubstr(path_ + ":2: a token has"));
  Write(std::string(257, 'a'));
  EXPECT_FALSE(ReadTokens(path_).ok());
  Write(
      "aaaaaaaaaaaaaaa1\naaaaaaaaaaaaaaa2\naaaaaaaaaaaaaaa3\naaaaaaaaaaaaaaa4\naaaaaaaaaaaaaaa5\n"
      "aaaaaaaaaaaaaaa6\naaaaaaaaaaaaaaa7\naaaaaaaaaaaaaaa8\naaaaaaaaaaaaaaa9\n");
  EXPECT_THAT(ReadTokens(path_).status().message(), HasSubstr("holds 9 tokens"));
}

TEST_F(TokenFileTest, MayBeAVariable) {
  setenv("SLIPSTREAM_TEST_TOKEN", "0123456789abcdef", 1);
  EXPECT_THAT(*ReadTokens("env:SLIPSTREAM_TEST_TOKEN"), ElementsAre("0123456789abcdef"));
  unsetenv("SLIPSTREAM_TEST_TOKEN");
  EXPECT_THAT(ReadTokens("env:SLIPSTREAM_TEST_TOKEN").status().message(),
              HasSubstr("SLIPSTREAM_TEST_TOKEN"));
}

TEST_F(TokenFileTest, ATokenInPlaceOfItsPathIsNotQuoted) {
  const std::string secret = "6ecb4ea00123456789abcdef01234567";
  const absl::Status status = ReadTokens(secret).status();
  EXPECT_THAT(status.message(), HasSubstr("where the path of a file"));
  EXPECT_THAT(status.message(), testing::Not(HasSubstr(secret)));
}

TEST_F(TokenFileTest, TakesAnyOfItsTokensAndShowsTheFirst) {
  Write("aaaaaaaaaaaaaaaa\nbbbbbbbbbbbbbbbb\n");
  TokenFile file(path_);
  EXPECT_EQ(file.First(kStart), "aaaaaaaaaaaaaaaa");
  EXPECT_TRUE(file.Holds("bbbbbbbbbbbbbbbb", kStart));
  for (const char* wrong : {"", "aaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaab", "aaaaaaaaaaaaaaaaa"}) {
    EXPECT_FALSE(file.Holds(wrong, kStart)) << wrong;
  }
}

TEST_F(TokenFileTest, FollowsTheFile) {
  Write("aaaaaaaaaaaaaaaa\n");
  TokenFile file(path_);
  EXPECT_TRUE(file.Holds("aaaaaaaaaaaaaaaa", kStart));
  Write("bbbbbbbbbbbbbbbb\n");
  EXPECT_TRUE(file.Holds("aaaaaaaaaaaaaaaa", kStart + absl::Seconds(1)));
  EXPECT_FALSE(file.Holds("aaaaaaaaaaaaaaaa", kStart + absl::Seconds(6)));
  EXPECT_TRUE(file.Holds("bbbbbbbbbbbbbbbb", kStart + absl::Seconds(6)));
  std::remove(path_.c_str());
  EXPECT_TRUE(file.Holds("bbbbbbbbbbbbbbbb", kStart + absl::Seconds(20)));
}

}  // namespace
}  // namespace slipstream
