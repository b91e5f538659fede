#ifndef SLIPSTREAM_COMMON_WIRE_WIRE_FIELDS_H_
#define SLIPSTREAM_COMMON_WIRE_WIRE_FIELDS_H_

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/base/ids.h"

namespace slipstream {

/// How a struct travels as a protobuf message. A specialisation lists each field once, for both
/// directions:
///
///     template <>
///     struct WireOf<Stamp> {
///       using Message = v1::Stamp;
///       template <typename Map, typename Self, typename Wire>
///       static void Fields(Map& map, Self& self, Wire& wire) {
///         WIRE_FIELD(publisher, publisher);
///         WIRE_FIELD(number, number);
///       }
///     };
///
/// It may have `static std::string Fault(const T&, const Message&)`, which returns what no message
/// of a peer may say, such as "number: 7 is not possible"; empty if nothing is wrong. The path of
/// the message is put before it.
///
/// Fields are numbers, ids, texts, enumerations with the wire's numbers (0 leaves the member as its
/// struct has made it), and other structs with a WireOf. An optional that is a FIELD is 0 if empty.
template <typename T>
struct WireOf;

// In Fields: the member, and the field of the message. An absent OPTIONAL field or MESSAGE is an
// empty optional; REQUIRED is a message that must be there; a REPEATED one has at most `most`.
#define WIRE_FIELD(member, field)                    \
  map.Field(#field, self.member, wire, wire.field(), \
            [](auto& message, auto value) { message.set_##field(value); })
#define WIRE_OPTIONAL(member, field)                                        \
  map.Optional(#field, self.member, wire, wire.has_##field(), wire.field(), \
               [](auto& message, auto value) { message.set_##field(value); })
#define WIRE_MESSAGE(member, field)                                        \
  map.Message(#field, self.member, wire, wire.has_##field(), wire.field(), \
              [](auto& message) { return message.mutable_##field(); })
#define WIRE_REQUIRED(member, field)                                        \
  map.Required(#field, self.member, wire, wire.has_##field(), wire.field(), \
               [](auto& message) { return message.mutable_##field(); })
#define WIRE_REPEATED(member, field, most)                    \
  map.Repeated(#field, self.member, wire, wire.field(), most, \
               [](auto& message) { return message.add_##field(); })

/// Fills messages.
class ToMessage {
 public:
  template <typename T, typename Wire, typename Value, typename Set>
  void Field(const char*, const T& value, Wire& wire, const Value&, Set set) {
    if constexpr (requires { value.has_value(); }) {
      if (value.has_value()) set(wire, static_cast<Value>(*value));
    } else if constexpr (std::is_enum_v<T>) {
      set(wire, static_cast<Value>(value));
    } else {
      set(wire, value);
    }
  }

  template <typename T, typename Wire, typename Value, typename Set>
  void Optional(const char* name, const std::optional<T>& value, Wire& wire, bool,
                const Value& before, Set set) {
    if (value.has_value()) Field(name, *value, wire, before, set);
  }

  template <typename T, typename Wire, typename Value, typename Get>
  void Message(const char*, const std::optional<T>& value, Wire& wire, bool, const Value&,
               Get get) {
    if (value.has_value()) WireOf<T>::Fields(*this, *value, *get(wire));
  }

  template <typename T, typename Wire, typename Value, typename Get>
  void Required(const char*, const T& value, Wire& wire, bool, const Value&, Get get) {
    WireOf<T>::Fields(*this, value, *get(wire));
  }

  template <typename All, typename Wire, typename Value, typename Add>
  void Repeated(const char*, const All& all, Wire& wire, const Value&, size_t, Add add) {
    for (const auto& each : all) {
      WireOf<std::remove_cvref_t<decltype(each)>>::Fields(*this, each, *add(wire));
    }
  }
};

/// Fills structs from the messages of a peer. Keeps the first thing that is wrong.
class FromMessage {
 public:
  /// Returns what is wrong; empty if nothing is.
  const std::string& fault() const { return fault_; }

  template <typename T>
  void Read(T& value, const typename WireOf<T>::Message& wire) {
    WireOf<T>::Fields(*this, value, wire);
    if constexpr (requires { WireOf<T>::Fault(value, wire); }) {
      if (fault_.empty()) Note(WireOf<T>::Fault(value, wire));
    }
  }

  template <typename T, typename Wire, typename Value, typename Set>
  void Field(const char* name, T& value, const Wire& wire, const Value& of_wire, Set set) {
    if constexpr (requires { value.has_value(); }) {
      if (of_wire != Value{}) Field(name, value.emplace(), wire, of_wire, set);
    } else if constexpr (std::is_enum_v<Value>) {
      // Each enumeration of the wire has such a function, found by its argument.
      if (!IsKnown(of_wire)) return Note(Unknown(name, of_wire));
      if (of_wire != Value{}) value = static_cast<T>(of_wire);
    } else {
      // Workers' clocks have a bound wherever they come.
      if constexpr (std::same_as<T, WorkerClock>) {
        if (of_wire > slipstream::Value(kWorkerClockMax)) return Note(Impossible(name, of_wire));
      }
      value = static_cast<T>(of_wire);
    }
  }

  template <typename T, typename Wire, typename Value, typename Set>
  void Optional(const char* name, std::optional<T>& value, const Wire& wire, bool is_there,
                const Value& of_wire, Set set) {
    if (is_there) Field(name, value.emplace(), wire, of_wire, set);
  }

  template <typename T, typename Wire, typename Value, typename Get>
  void Message(const char* name, std::optional<T>& value, const Wire&, bool is_there,
               const Value& of_wire, Get) {
    if (is_there) ReadBelow(name, value.emplace(), of_wire);
  }

  template <typename T, typename Wire, typename Value, typename Get>
  void Required(const char* name, T& value, const Wire&, bool is_there, const Value& of_wire, Get) {
    if (!is_there) return Note(std::string(name) + ": missing");
    ReadBelow(name, value, of_wire);
  }

  template <typename All, typename Wire, typename Value, typename Add>
  void Repeated(const char* name, All& all, const Wire&, const Value& of_wire, size_t most, Add) {
    if (static_cast<size_t>(of_wire.size()) > most) {
      return Note(std::string(name) + ": " + std::to_string(of_wire.size()) + ", more than " +
                  std::to_string(most));
    }
    for (const auto& each : of_wire) {
      typename All::value_type value;
      ReadBelow(name, value, each);
      all.push_back(std::move(value));
    }
  }

  /// Return the texts of faults.
  static std::string Unknown(std::string_view name, int value) {
    return std::string(name) + ": " + std::to_string(value) + " is not known here";
  }
  template <typename Number>
  static std::string Impossible(std::string_view name, Number value) {
    return std::string(name) + ": " + std::to_string(value) + " is not possible";
  }

 private:
  template <typename T>
  void ReadBelow(const char* name, T& value, const typename WireOf<T>::Message& wire) {
    if (!fault_.empty()) return;
    FromMessage below;
    below.Read(value, wire);
    if (!below.fault_.empty()) Note(std::string(name) + "." + below.fault_);
  }

  void Note(const std::string& fault) {
    if (fault_.empty() && !fault.empty()) fault_ = fault;
  }

  std::string fault_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_WIRE_FIELDS_H_
