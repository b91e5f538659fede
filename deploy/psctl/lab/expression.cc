#include "deploy/psctl/lab/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <utility>

#include "common/config/yaml_number.h"

namespace slipstream {
namespace {

constexpr int kDepthMax = 64;

constexpr std::string_view kKinds[] = {"a number", "a truth value", "a text"};

/// Parses and evaluates at the same time, one function for each level of precedence. After an error
/// nothing is left to read, so that all of them return, with values that do not matter.
class Evaluator {
 public:
  Evaluator(std::string_view text, const ValueOfName& value_of)
      : text_(text), value_of_(value_of) {}

  std::variant<ExpressionValue, ExpressionError> Run() {
    ExpressionValue value = Or();
    SkipBlanks();
    if (at_ < text_.size()) Fail(at_, fmt::format("unexpected \"{}\"", text_.substr(at_)));
    if (error_) return *std::move(error_);
    return value;
  }

 private:
  /// Notes the first error. Returns a value for the caller to return.
  double Fail(size_t offset, std::string message) {
    if (!error_) error_ = {offset, std::move(message)};
    at_ = text_.size();
    return 0;
  }

  void SkipBlanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  static bool IsWordPart(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  }

  /// Takes `symbol` if it comes next. A word must end where `symbol` does.
  bool Take(std::string_view symbol) {
    SkipBlanks();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    const size_t end = at_ + symbol.size();
    if (IsWordPart(symbol.back()) && end < text_.size() && IsWordPart(text_[end])) return false;
    at_ = end;
    return true;
  }

  template <typename T>
  T As(const ExpressionValue& value, size_t offset, std::string_view what) {
    if (const T* found = std::get_if<T>(&value)) return *found;
    constexpr size_t kWanted = ExpressionValue(T()).index();
    Fail(offset,
         fmt::format("{} needs {}, and this is {}", what, kKinds[kWanted], kKinds[value.index()]));
    return T();
  }

  ExpressionValue Or() {
    const size_t begin = at_;
    ExpressionValue value = And();
    while (Take("or")) {
      const bool left = As<bool>(value, begin, "or");
      const size_t right_begin = at_;
      value = As<bool>(And(), right_begin, "or") || left;
    }
    return value;
  }

  ExpressionValue And() {
    const size_t begin = at_;
    ExpressionValue value = Not();
    while (Take("and")) {
      const bool left = As<bool>(value, begin, "and");
      const size_t right_begin = at_;
      value = As<bool>(Not(), right_begin, "and") && left;
    }
    return value;
  }

  ExpressionValue Not() {
    if (!Take("not")) return Comparison();
    const Depth depth(*this);
    const size_t begin = at_;
    return !As<bool>(Not(), begin, "not");
  }

  ExpressionValue Comparison() {
    ExpressionValue left = Sum();
    constexpr std::array<std::string_view, 6> kOperators = {"==", "!=", "<=", ">=", "<", ">"};
    const auto* const found =
        std::ranges::find_if(kOperators, [this](std::string_view one) { return Take(one); });
    if (found == kOperators.end() && Take("=")) {
      return Fail(at_ - 1, "= sets nothing here; == asks whether two values are equal");
    }
    if (found == kOperators.end()) return left;
    const size_t begin = at_;
    const ExpressionValue right = Sum();
    if (left.index() != right.index()) {
      return Fail(begin, fmt::format("{} compares {} with {}", *found, kKinds[left.index()],
                                     kKinds[right.index()]));
    }
    if (*found == "==") return left == right;
    if (*found == "!=") return left != right;
    if (*found == "<=") return left <= right;
    if (*found == ">=") return left >= right;
    return *found == "<" ? left < right : left > right;
  }

  ExpressionValue Sum() {
    const size_t begin = at_;
    ExpressionValue value = Product();
    while (true) {
      const bool adds = Take("+");
      if (!adds && !Take("-")) return value;
      const double left = As<double>(value, begin, adds ? "+" : "-");
      const size_t right_begin = at_;
      const double right = As<double>(Product(), right_begin, adds ? "+" : "-");
      value = adds ? left + right : left - right;
    }
  }

  ExpressionValue Product() {
    const size_t begin = at_;
    ExpressionValue value = Unary();
    while (true) {
      const std::string_view sign = Take("*") ? "*" : Take("/") ? "/" : Take("%") ? "%" : "";
      if (sign.empty()) return value;
      const double left = As<double>(value, begin, sign);
      const size_t right_begin = at_;
      const double right = As<double>(Unary(), right_begin, sign);
      if (sign == "*") {
        value = left * right;
        continue;
      }
      if (right == 0) return Fail(right_begin, "division by zero");
      value = sign == "/" ? left / right : left - right * std::floor(left / right);
    }
  }

  ExpressionValue Unary() {
    if (!Take("-")) return Primary();
    const Depth depth(*this);
    const size_t begin = at_;
    return -As<double>(Unary(), begin, "-");
  }

  ExpressionValue Primary() {
    SkipBlanks();
    const size_t begin = at_;
    if (at_ == text_.size()) return Fail(begin, "the expression ends where a value should come");
    if (Take("(")) {
      const Depth depth(*this);
      ExpressionValue value = Or();
      if (!Take(")")) Fail(at_, "a \")\" is missing");
      return value;
    }
    const char first = text_[at_];
    if (first == '\'' || first == '"') return Quoted(first);
    if (std::isdigit(static_cast<unsigned char>(first)) != 0 || first == '.') return Number();
    while (at_ < text_.size() && IsWordPart(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return Fail(begin, fmt::format("unexpected \"{}\"", text_.substr(begin)));
    if (word == "true" || word == "false") return word == "true";
    if (Take("(")) return Call(word, begin);
    std::variant<ExpressionValue, NameError> value = value_of_(word);
    if (auto* const wrong = std::get_if<NameError>(&value)) {
      return Fail(begin, std::move(wrong->message));
    }
    return std::get<ExpressionValue>(std::move(value));
  }

  ExpressionValue Quoted(char quote) {
    const size_t begin = at_;
    const size_t end = text_.find(quote, begin + 1);
    if (end == std::string_view::npos) return Fail(begin, "a text without its closing quote");
    at_ = end + 1;
    return std::string(text_.substr(begin + 1, end - begin - 1));
  }

  ExpressionValue Number() {
    const size_t length = DecimalLength(text_.substr(at_));
    const std::optional<YamlNumber> number = ReadYamlNumber(text_.substr(at_, length));
    const size_t end = at_ + length;
    if (!number || (end < text_.size() && IsWordPart(text_[end]))) {
      return Fail(at_, "not a number; a unit is no part of an expression");
    }
    at_ = end;
    return number->value;
  }

  ExpressionValue Call(std::string_view name, size_t begin) {
    const Depth depth(*this);
    const double first = As<double>(Or(), begin, name);
    if (name == "min" || name == "max") {
      if (!Take(",")) return Fail(at_, fmt::format("{} takes two numbers", name));
      const double second = As<double>(Or(), begin, name);
      Close();
      return name == "min" ? std::min(first, second) : std::max(first, second);
    }
    Close();
    if (name == "floor") return std::floor(first);
    if (name == "ceil") return std::ceil(first);
    if (name == "round") return std::round(first);
    if (name == "sqrt" && first >= 0) return std::sqrt(first);
    if (name == "log2" && first > 0) return std::log2(first);
    if (name == "sqrt" || name == "log2") return Fail(begin, fmt::format("{} of {}", name, first));
    return Fail(begin,
                fmt::format("there is no function \"{}\"; there are floor, ceil, round, sqrt, "
                            "log2, min and max",
                            name));
  }

  void Close() {
    if (!Take(")")) Fail(at_, "a \")\" is missing");
  }

  /// Bounds the recursion.
  struct Depth {
    explicit Depth(Evaluator& evaluator) : depth(evaluator.depth_) {
      if (++depth > kDepthMax) evaluator.Fail(evaluator.at_, "the expression is nested too deeply");
    }
    ~Depth() { --depth; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int& depth;
  };

  const std::string_view text_;
  const ValueOfName& value_of_;
  size_t at_ = 0;
  int depth_ = 0;
  std::optional<ExpressionError> error_;
};

}  // namespace

std::variant<ExpressionValue, ExpressionError> Evaluate(std::string_view text,
                                                        const ValueOfName& value_of) {
  return Evaluator(text, value_of).Run();
}

ExpressionValue ValueOfScalar(const std::string& text) {
  if (const std::optional<YamlNumber> number = ReadYamlNumber(text)) return number->value;
  if (const std::optional<bool> truth = ReadYamlTruth(text)) return *truth;
  return text;
}

std::string ScalarOf(const ExpressionValue& value) {
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const double number = std::get<double>(value);
  const bool is_whole = number == std::floor(number) && std::abs(number) < 1e15;
  return is_whole ? fmt::format("{}", static_cast<int64_t>(number)) : fmt::format("{}", number);
}

}  // namespace slipstream
