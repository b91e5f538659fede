#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_EXPRESSION_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_EXPRESSION_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

namespace slipstream {

/// The value of an expression, or of a key that it names.
using ExpressionValue = std::variant<double, bool, std::string>;

/// An error in an expression, and its place: the number of bytes before it.
struct ExpressionError {
  size_t offset = 0;
  std::string message;
};

/// The fault in a name.
struct NameError {
  std::string message;
};

/// Returns the value of a name.
using ValueOfName = std::function<std::variant<ExpressionValue, NameError>(std::string_view name)>;

/// Evaluates an expression such as `128/batch_size` or `policy == 'softsync' and n <= workers`.
///
/// There are numbers, texts in quotes of either kind, true and false, and names of keys, which may
/// have dots; the operators of Python, `or`, `and`, `not`, `== != < <= > >=`, `+ - * / %`, with
/// their precedence; parentheses; and the functions floor, ceil, round, sqrt and log2 of one
/// number, min and max of two. Both sides of an operator are always evaluated.
std::variant<ExpressionValue, ExpressionError> Evaluate(std::string_view text,
                                                        const ValueOfName& value_of);

/// Returns the value of a scalar of YAML without quotes: a number, true, false, or the text.
ExpressionValue ValueOfScalar(const std::string& text);

/// Returns the value as a scalar of YAML; whole numbers have no point.
std::string ScalarOf(const ExpressionValue& value);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_EXPRESSION_H_
