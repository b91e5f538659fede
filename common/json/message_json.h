#ifndef SLIPSTREAM_COMMON_JSON_MESSAGE_JSON_H_
#define SLIPSTREAM_COMMON_JSON_MESSAGE_JSON_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace google::protobuf {
class Message;
}

namespace slipstream {

/// Returns an identifier as people and scripts see it: sixteen hexadecimal digits. Many tools would
/// round numbers above 2^53.
nlohmann::ordered_json IdJson(uint64_t id);

/// Returns the message as JSON with the field names of the .proto file. Unlike protobuf's own JSON
/// it has every field, so that a script finds each of them in every phase: an absent message has
/// the defaults, and an absent `optional` scalar is null. 64-bit integers are numbers with all
/// their digits, except fields of type fixed64, which hold identifiers and are as IdJson returns
/// them. Enumerations are names, and NaN and infinities are null. REQUIRES: the type is not
/// recursive.
nlohmann::ordered_json MessageJson(const google::protobuf::Message& message);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_JSON_MESSAGE_JSON_H_
