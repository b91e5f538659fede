#ifndef SLIPSTREAM_TESTS_FUZZ_FUZZ_INPUT_H_
#define SLIPSTREAM_TESTS_FUZZ_FUZZ_INPUT_H_

#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

namespace slipstream {

/// Takes fields from an input, one after another. After the end of the input, numbers are 0.
///
/// Not thread-safe: one owner. The input must outlive the fields taken from it.
class FuzzInput {
 public:
  explicit FuzzInput(std::string_view input) : rest_(input) {}

  bool is_at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  /// Takes a little-endian number.
  template <typename Number>
  Number Take() {
    Number number{};
    const std::string_view bytes = TakeBytes(sizeof(Number));
    if (!bytes.empty()) std::memcpy(&number, bytes.data(), bytes.size());
    return number;
  }

  /// Takes `count` bytes, or all that are left if there are fewer.
  std::string_view TakeBytes(size_t count) {
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(bytes.size());
    return bytes;
  }

 private:
  std::string_view rest_;
};

/// Separates the parts of an input. Unlike a length in front of each part, it keeps the parts
/// intact when a fuzzer makes the input longer or shorter.
inline constexpr std::string_view kPartEnd = "<|>";

/// Returns the parts of an input: at least one, which may be empty.
inline std::vector<std::string_view> PartsOf(std::string_view input) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = input.find(kPartEnd);
    parts.push_back(input.substr(0, end));
    if (end == std::string_view::npos) return parts;
    input.remove_prefix(end + kPartEnd.size());
  }
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_FUZZ_FUZZ_INPUT_H_
