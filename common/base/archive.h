#ifndef SLIPSTREAM_COMMON_BASE_ARCHIVE_H_
#define SLIPSTREAM_COMMON_BASE_ARCHIVE_H_

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace slipstream {

/// State that a program saves for itself and for later releases, as bytes. The bytes are those of a
/// protobuf message (https://protobuf.dev/programming-guides/encoding), so `protoc --decode_raw`
/// shows them.
///
/// A class lists its members once, for writing and for reading:
///
///     template <typename Archive, typename Self>
///     static void Parts(Archive& archive, Self& self) {
///       archive(self.first_, self.second_);
///     }
///
/// The place of a member in this list, from 1, is the number of its field. So a later release may
/// only add members at the end; where a member goes, archive.Skip() keeps its number out of use. A
/// field that an older release has not written leaves its member as the constructor of the class
/// has made it. kDurableFormat (common/process/version.h) goes up with every such change, so that
/// an older release refuses what it would not understand.
///
/// A number is a varint, a float or a double has its own bytes; an empty optional is left out; a
/// container of numbers is packed, any other is repeated, with the pairs of a map as messages.
/// Members have to be numbers, enumerations, strings, classes with Parts, and pairs, optionals,
/// vectors, deques, sets or maps of such.
template <typename T, typename Archive>
concept HasParts = requires(Archive& archive, T& value) {
  T::Parts(archive, value);
};

namespace archive_internal {

// The types of a field's value on the wire.
inline constexpr uint64_t kVarint = 0;
inline constexpr uint64_t kFixed64 = 1;
inline constexpr uint64_t kBytes = 2;
inline constexpr uint64_t kFixed32 = 5;

template <typename T>
concept Number = std::integral<T> || std::floating_point<T> || std::is_enum_v<T>;

template <typename T>
concept Container = requires(const T& all) {
  typename T::value_type;
  all.begin();
  all.size();
}
&&!std::same_as<T, std::string>;

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <Number T>
constexpr uint64_t WireTypeOf() {
  if constexpr (!std::floating_point<T>) return kVarint;
  return sizeof(T) == sizeof(double) ? kFixed64 : kFixed32;
}

}  // namespace archive_internal

/// Writes values, with the field numbers 1, 2, …. Not thread-safe: one owner.
class ArchiveWriter {
 public:
  template <typename... Values>
  void operator()(const Values&... values) {
    (WriteField(++field_, values), ...);
  }

  /// Leaves a number out.
  void Skip() { ++field_; }

  /// Returns what was written.
  std::string Take() { return std::move(bytes_); }

 private:
  template <typename T>
  void WriteField(uint64_t field, const T& value) {
    using namespace archive_internal;
    if constexpr (kIsOptional<T>) {
      if (value.has_value()) WriteField(field, *value);
    } else if constexpr (Number<T>) {
      WriteVarint(field << 3 | WireTypeOf<T>());
      WriteNumber(value);
    } else if constexpr (Container<T>) {
      WriteContainer(field, value);
    } else {
      WriteVarint(field << 3 | kBytes);
      WriteBytes([&] { WriteBody(value); });
    }
  }

  template <typename T>
  void WriteContainer(uint64_t field, const T& all) {
    using namespace archive_internal;
    if constexpr (Number<typename T::value_type>) {
      if (all.size() == 0) return;
      WriteVarint(field << 3 | kBytes);
      WriteBytes([&] {
        for (const auto& each : all) WriteNumber(each);
      });
    } else {
      for (const auto& each : all) {
        WriteVarint(field << 3 | kBytes);
        WriteBytes([&] { WriteBody(each); });
      }
    }
  }

  /// Writes what is a message or a text, without its length. An element of a container that is a
  /// container or an optional itself is a message with one field.
  template <typename T>
  void WriteBody(const T& value) {
    if constexpr (std::same_as<T, std::string>) {
      bytes_ += value;
    } else {
      const uint64_t outer = std::exchange(field_, 0);
      if constexpr (HasParts<const T, ArchiveWriter>) {
        T::Parts(*this, value);
      } else if constexpr (archive_internal::Container<T> || archive_internal::kIsOptional<T>) {
        (*this)(value);
      } else {
        (*this)(value.first, value.second);
      }
      field_ = outer;
    }
  }

  /// Runs `body`, which writes, and puts the length of that before it.
  template <typename Body>
  void WriteBytes(const Body& body) {
    const size_t begin = bytes_.size();
    bytes_ += '\0';  // The length has one byte, most often.
    body();
    uint64_t size = bytes_.size() - begin - 1;
    std::string length;
    for (; size >= 0x80; size >>= 7) length += static_cast<char>(size | 0x80);
    bytes_[begin] = static_cast<char>(size);
    bytes_.insert(begin, length);
  }

  template <typename T>
  void WriteNumber(T number) {
    if constexpr (std::floating_point<T>) {
      static_assert(std::endian::native == std::endian::little);
      char bytes[sizeof(T)];
      std::memcpy(bytes, &number, sizeof(T));
      bytes_.append(bytes, sizeof(T));
    } else {
      WriteVarint(static_cast<uint64_t>(number));
    }
  }

  void WriteVarint(uint64_t number) {
    for (; number >= 0x80; number >>= 7) bytes_ += static_cast<char>(number | 0x80);
    bytes_ += static_cast<char>(number);
  }

  std::string bytes_;
  uint64_t field_ = 0;
};

/// Reads values that an ArchiveWriter wrote, in the same order. Bytes that end too early, or that
/// no writer writes, make it fail: ok() is false from then on, and what was read has no meaning. An
/// element of a container has a byte at least, which bounds the memory that bytes can ask for.
///
/// Not thread-safe: one owner.
class ArchiveReader {
 public:
  /// `bytes` must outlive the reader.
  explicit ArchiveReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename... Values>
  void operator()(Values&... values) {
    (ReadField(++field_, values), ...);
  }

  /// Leaves out a number that is not in use any more.
  void Skip() {
    ++field_;
    while (const std::optional<uint64_t> type = TakeTag(field_)) SkipValue(*type);
  }

  bool ok() const { return is_ok_; }

  /// Returns whether all bytes were read, and nothing was wrong with them.
  bool is_complete() const { return is_ok_ && bytes_.empty(); }

 private:
  void Fail() {
    is_ok_ = false;
    bytes_ = {};
  }

  /// Returns the wire type of the next value if it is of this field. Fields come in order.
  std::optional<uint64_t> TakeTag(uint64_t field) {
    if (bytes_.empty()) return std::nullopt;
    const std::string_view before = bytes_;
    const uint64_t tag = ReadVarint();
    if (tag >> 3 == field) return tag & 7;
    if (tag >> 3 < field) Fail();
    if (ok()) bytes_ = before;
    return std::nullopt;
  }

  template <typename T>
  void ReadField(uint64_t field, T& value) {
    using namespace archive_internal;
    if constexpr (kIsOptional<T>) {
      value.reset();
      if constexpr (Container<typename T::value_type>) {
        // It is there if it has elements.
        typename T::value_type found{};
        ReadField(field, found);
        if (found.size() > 0) value = std::move(found);
      } else if (const std::optional<uint64_t> type = TakeTag(field)) {
        // Clang 14 takes a struct nested in a class for one that emplace() cannot construct.
        value = typename T::value_type{};
        ReadValue(*type, *value);
      }
    } else if constexpr (Container<T>) {
      value.clear();
      while (const std::optional<uint64_t> type = TakeTag(field)) ReadElements(*type, value);
    } else if (const std::optional<uint64_t> type = TakeTag(field)) {
      ReadValue(*type, value);
    }
  }

  template <typename T>
  void ReadValue(uint64_t type, T& value) {
    using namespace archive_internal;
    if constexpr (Number<T>) {
      if (type != WireTypeOf<T>()) return Fail();
      ReadNumber(value);
    } else {
      if (type != kBytes) return Fail();
      ReadBody(ReadBytes(), value);
    }
  }

  template <typename T>
  void ReadElements(uint64_t type, T& all) {
    if (type != archive_internal::kBytes) return Fail();
    const std::string_view bytes = ReadBytes();
    if constexpr (archive_internal::Number<typename T::value_type>) {
      ArchiveReader elements(bytes);
      while (!elements.bytes_.empty()) {
        typename T::value_type each{};
        elements.ReadNumber(each);
        all.insert(all.end(), each);
      }
      if (!elements.ok()) Fail();
    } else if constexpr (requires { typename T::mapped_type; }) {
      std::pair<typename T::key_type, typename T::mapped_type> each{};
      ReadBody(bytes, each);
      all.insert(all.end(), std::move(each));
    } else {
      typename T::value_type each{};
      ReadBody(bytes, each);
      all.insert(all.end(), std::move(each));
    }
  }

  template <typename T>
  void ReadBody(std::string_view bytes, T& value) {
    if constexpr (std::same_as<T, std::string>) {
      value = bytes;
    } else {
      ArchiveReader body(bytes);
      if constexpr (HasParts<T, ArchiveReader>) {
        T::Parts(body, value);
      } else if constexpr (archive_internal::Container<T> || archive_internal::kIsOptional<T>) {
        body(value);
      } else {
        body(value.first, value.second);
      }
      if (!body.is_complete()) Fail();
    }
  }

  template <typename T>
  void ReadNumber(T& number) {
    if constexpr (std::floating_point<T>) {
      if (bytes_.size() < sizeof(T)) return Fail();
      std::memcpy(&number, bytes_.data(), sizeof(T));
      bytes_.remove_prefix(sizeof(T));
    } else {
      const uint64_t found = ReadVarint();
      number = static_cast<T>(found);
      if (static_cast<uint64_t>(number) != found) Fail();
    }
  }

  uint64_t ReadVarint() {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) break;
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      number |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return number;
    }
    Fail();
    return 0;
  }

  std::string_view ReadBytes() {
    const uint64_t size = ReadVarint();
    if (size > bytes_.size()) {
      Fail();
      return {};
    }
    const std::string_view bytes = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return bytes;
  }

  void SkipValue(uint64_t type) {
    using namespace archive_internal;
    switch (type) {
      case kVarint:
        ReadVarint();
        return;
      case kBytes:
        ReadBytes();
        return;
      case kFixed64:
      case kFixed32:
        if (bytes_.size() < (type == kFixed64 ? 8 : 4)) return Fail();
        bytes_.remove_prefix(type == kFixed64 ? 8 : 4);
        return;
      default:
        return Fail();
    }
  }

  std::string_view bytes_;
  uint64_t field_ = 0;
  bool is_ok_ = true;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_ARCHIVE_H_
