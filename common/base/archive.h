#ifndef SLIPSTREAM_COMMON_BASE_ARCHIVE_H_
#define SLIPSTREAM_COMMON_BASE_ARCHIVE_H_

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace slipstream {

/// State that a program saves for itself, as bytes: every number is little-endian and has the size
/// of its type, and a container is its length and its elements. Nothing in the bytes names a field,
/// so only the version of the program that wrote them may read them; the file around them says
/// which one that was.
///
/// A class lists its members once, for writing and for reading:
///
///     template <typename Archive, typename Self>
///     static void Parts(Archive& archive, Self& self) {
///       archive(self.first_, self.second_);
///     }
///
/// All others have to be numbers, enumerations, strings, pairs, optionals, vectors, deques, sets or
/// maps of such.
template <typename T, typename Archive>
concept HasParts = requires(Archive& archive, T& value) {
  T::Parts(archive, value);
};

/// Writes values. Not thread-safe: one owner.
class ArchiveWriter {
 public:
  template <typename... Values>
  void operator()(const Values&... values) {
    (Write(values), ...);
  }

  /// Returns what was written.
  std::string Take() { return std::move(bytes_); }

 private:
  template <typename T>
  requires std::integral<T> || std::floating_point<T>
  void Write(const T& number) {
    static_assert(std::endian::native == std::endian::little);
    char bytes[sizeof(T)];
    std::memcpy(bytes, &number, sizeof(T));
    bytes_.append(bytes, sizeof(T));
  }

  template <typename T>
  requires std::is_enum_v<T>
  void Write(const T& value) { Write(static_cast<std::underlying_type_t<T>>(value)); }

  void Write(const std::string& text) {
    Write(uint64_t{text.size()});
    bytes_ += text;
  }

  template <typename T>
  void Write(const std::optional<T>& value) {
    Write(value.has_value());
    if (value.has_value()) Write(*value);
  }

  template <typename A, typename B>
  void Write(const std::pair<A, B>& both) {
    Write(both.first);
    Write(both.second);
  }

  template <typename T>
  requires requires(const T& all) {
    typename T::value_type;
    all.begin();
    all.size();
  } &&(!std::same_as<T, std::string>)void Write(const T& all) {
    Write(uint64_t{all.size()});
    for (const auto& each : all) Write(each);
  }

  template <typename T>
  requires HasParts<const T, ArchiveWriter>
  void Write(const T& value) { T::Parts(*this, value); }

  std::string bytes_;
};

/// Reads values that an ArchiveWriter wrote, in the same order. Bytes that end too early, or that
/// no writer writes, make it fail: ok() is false from then on, and what was read has no meaning. It
/// takes no more memory than a small multiple of the bytes.
///
/// Not thread-safe: one owner.
class ArchiveReader {
 public:
  /// `bytes` must outlive the reader.
  explicit ArchiveReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename... Values>
  void operator()(Values&... values) {
    (Read(values), ...);
  }

  bool ok() const { return is_ok_; }

  /// Returns whether all bytes were read, and nothing was wrong with them.
  bool is_complete() const { return is_ok_ && bytes_.empty(); }

  /// Notes that a value makes no sense.
  void Fail() {
    is_ok_ = false;
    bytes_ = {};
  }

 private:
  template <typename T>
  requires std::integral<T> || std::floating_point<T>
  void Read(T& number) {
    if (bytes_.size() < sizeof(T)) return Fail();
    if constexpr (std::same_as<T, bool>) {
      if (bytes_.front() != 0 && bytes_.front() != 1) return Fail();
      number = bytes_.front() == 1;
    } else {
      std::memcpy(&number, bytes_.data(), sizeof(T));
    }
    bytes_.remove_prefix(sizeof(T));
  }

  template <typename T>
  requires std::is_enum_v<T>
  void Read(T& value) {
    std::underlying_type_t<T> number{};
    Read(number);
    value = static_cast<T>(number);
  }

  void Read(std::string& text) {
    const uint64_t size = ReadSize();
    text.assign(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
  }

  template <typename T>
  void Read(std::optional<T>& value) {
    bool has_value = false;
    Read(has_value);
    value.reset();
    if (!has_value || !ok()) return;
    // Clang 14 takes a struct nested in a class for one that emplace() cannot construct.
    value = T{};
    Read(*value);
  }

  template <typename A, typename B>
  void Read(std::pair<A, B>& both) {
    Read(both.first);
    Read(both.second);
  }

  template <typename T>
  requires requires(T& all) {
    all.push_back(typename T::value_type());
  } &&(!std::same_as<T, std::string>)void Read(T& all) {
    all.clear();
    const uint64_t size = ReadSize();
    for (uint64_t i = 0; i < size && ok(); ++i) {
      typename T::value_type each{};
      Read(each);
      all.push_back(std::move(each));
    }
  }

  template <typename T>
  requires requires { typename T::key_type; }
  void Read(T& all) {
    all.clear();
    const uint64_t size = ReadSize();
    for (uint64_t i = 0; i < size && ok(); ++i) {
      if constexpr (requires { typename T::mapped_type; }) {
        std::pair<typename T::key_type, typename T::mapped_type> each{};
        Read(each);
        all.insert(all.end(), std::move(each));
      } else {
        typename T::key_type each{};
        Read(each);
        all.insert(all.end(), std::move(each));
      }
    }
  }

  template <typename T>
  requires HasParts<T, ArchiveReader>
  void Read(T& value) { T::Parts(*this, value); }

  /// Returns the number of elements that follow. Each has a byte at least.
  uint64_t ReadSize() {
    uint64_t size = 0;
    Read(size);
    if (size <= bytes_.size()) return size;
    Fail();
    return 0;
  }

  std::string_view bytes_;
  bool is_ok_ = true;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_ARCHIVE_H_
