#include "deploy/psctl/lab/expression.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

namespace slipstream {
namespace {

std::variant<ExpressionValue, NameError> ValueOf(std::string_view name) {
  if (name == "workers") return ExpressionValue(30.0);
  if (name == "training.batch_size") return ExpressionValue(4.0);
  if (name == "policy") return ExpressionValue(std::string("softsync"));
  if (name == "nesterov") return ExpressionValue(true);
  return NameError{"there is no key \"" + std::string(name) + "\""};
}

/// Returns the value as text, or "offset: message".
std::string Result(std::string_view text) {
  const auto result = Evaluate(text, ValueOf);
  if (const auto* error = std::get_if<ExpressionError>(&result)) {
    return std::to_string(error->offset) + ": " + error->message;
  }
  return ScalarOf(std::get<ExpressionValue>(result));
}

TEST(ExpressionTest, ComputesWithThePrecedenceOfPython) {
  EXPECT_EQ(Result("1 + 2 * 3 - 4 / 2"), "5");
  EXPECT_EQ(Result("(1 + 2) * 3"), "9");
  EXPECT_EQ(Result("-2 * -3 % 4"), "2");
  EXPECT_EQ(Result("128 / training.batch_size"), "32");
  EXPECT_EQ(Result("0.001/workers*3"), "0.0001");
  EXPECT_EQ(Result("max(1, floor(workers / 4)) + min(2, ceil(0.5)) + round(2.5)"), "11");
  EXPECT_EQ(Result("sqrt(16) + log2(8)"), "7");
}

TEST(ExpressionTest, DecidesConditions) {
  EXPECT_EQ(Result("policy == 'softsync' and workers >= 30"), "true");
  EXPECT_EQ(Result("policy != \"softsync\" or not nesterov"), "false");
  EXPECT_EQ(Result("workers < 4 or workers > 4 and true"), "true");
  EXPECT_EQ(Result("not workers <= 3"), "true");
}

TEST(ExpressionTest, NamesThePlaceOfAnError) {
  EXPECT_EQ(Result("1 + lambda"), "4: there is no key \"lambda\"");
  EXPECT_EQ(Result("1 +"), "3: the expression ends where a value should come");
  EXPECT_EQ(Result("(1 + 2"), "6: a \")\" is missing");
  EXPECT_EQ(Result("1 2"), "2: unexpected \"2\"");
  EXPECT_EQ(Result("4 / (2 - 2)"), "3: division by zero");
  EXPECT_EQ(Result("policy * 2"), "0: * needs a number, and this is a text");
  EXPECT_EQ(Result("policy == 2"), "9: == compares a text with a number");
  EXPECT_EQ(Result("policy = 'ssp'"),
            "7: = sets nothing here; == asks whether two values are equal");
  EXPECT_EQ(Result("workers and true"), "0: and needs a truth value, and this is a number");
  EXPECT_EQ(Result("'softsync"), "0: a text without its closing quote");
  EXPECT_EQ(Result("10ms"), "0: not a number; a unit is no part of an expression");
  EXPECT_EQ(Result("sqrt(0 - 4)"), "0: sqrt of -4");
  EXPECT_EQ(Result("cos(1)"),
            "0: there is no function \"cos\"; there are floor, ceil, round, sqrt, log2, min and "
            "max");
}

TEST(ExpressionTest, BoundsTheDepth) {
  EXPECT_NE(Result(std::string(1000, '(')).find("nested too deeply"), std::string::npos);
  EXPECT_NE(Result(std::string(1000, '-') + "1").find("nested too deeply"), std::string::npos);
}

}  // namespace
}  // namespace slipstream
