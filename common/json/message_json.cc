#include "common/json/message_json.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/json/json_number.h"
#include "common/json/json_text.h"

namespace slipstream {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Json = nlohmann::ordered_json;

Json EnumJson(const google::protobuf::EnumDescriptor& type, int number) {
  const auto* value = type.FindValueByNumber(number);
  // A newer peer may know more names.
  return value != nullptr ? Json(value->name()) : Json(number);
}

/// Returns the value of an unsigned field of 64 bits.
Json UnsignedJson(const FieldDescriptor& field, uint64_t value) {
  return field.type() == FieldDescriptor::TYPE_FIXED64 ? IdJson(value) : Json(value);
}

/// Returns the value of a field that is not repeated.
Json SingleJson(const Message& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return UnsignedJson(field, reflection.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberOrNull(reflection.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return NumberOrNull(static_cast<double>(reflection.GetFloat(message, &field)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumJson(*field.enum_type(), reflection.GetEnumValue(message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageJson(reflection.GetMessage(message, &field));
  }
  return nullptr;
}

/// Returns item `index` of a repeated field.
Json ItemJson(const Message& message, const FieldDescriptor& field, int index) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetRepeatedInt32(message, &field, index);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetRepeatedInt64(message, &field, index);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetRepeatedUInt32(message, &field, index);
    case FieldDescriptor::CPPTYPE_UINT64:
      return UnsignedJson(field, reflection.GetRepeatedUInt64(message, &field, index));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberOrNull(reflection.GetRepeatedDouble(message, &field, index));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return NumberOrNull(static_cast<double>(reflection.GetRepeatedFloat(message, &field, index)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetRepeatedBool(message, &field, index);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumJson(*field.enum_type(), reflection.GetRepeatedEnumValue(message, &field, index));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetRepeatedString(message, &field, index);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageJson(reflection.GetRepeatedMessage(message, &field, index));
  }
  return nullptr;
}

/// Returns a map as one object. Reflection sees a list of entries.
Json MapJson(const Message& message, const FieldDescriptor& field) {
  // Sorted, so that the same message is always the same text.
  std::map<std::string, Json> entries;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const FieldDescriptor& key = *field.message_type()->map_key();
  const FieldDescriptor& value = *field.message_type()->map_value();
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    const Json name = SingleJson(entry, key);
    entries[name.is_string() ? name.get<std::string>() : JsonCompact(name)] =
        SingleJson(entry, value);
  }
  Json object = Json::object();
  for (auto& [name, item] : entries) object[name] = std::move(item);
  return object;
}

Json FieldJson(const Message& message, const FieldDescriptor& field) {
  if (field.is_map()) return MapJson(message, field);
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (field.is_repeated()) {
    Json items = Json::array();
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      items.push_back(ItemJson(message, field, i));
    }
    return items;
  }
  const bool is_optional = field.has_presence() && field.message_type() == nullptr;
  if (is_optional && !reflection.HasField(message, &field)) return nullptr;
  return SingleJson(message, field);
}

}  // namespace

Json IdJson(uint64_t id) { return fmt::format("{:016x}", id); }

Json MessageJson(const Message& message) {
  Json object = Json::object();
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    object[type.field(i)->name()] = FieldJson(message, *type.field(i));
  }
  return object;
}

}  // namespace slipstream
