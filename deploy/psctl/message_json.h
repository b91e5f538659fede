#ifndef SLIPSTREAM_DEPLOY_PSCTL_MESSAGE_JSON_H_
#define SLIPSTREAM_DEPLOY_PSCTL_MESSAGE_JSON_H_

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

namespace slipstream {

/// Returns the message as JSON with the field names of the .proto file. Unlike protobuf's own JSON
/// it has every field, so that a script finds each of them in every phase: an absent message has
/// the defaults, and an absent `optional` scalar is null. 64-bit integers are numbers with all
/// their digits, enumerations are names, and NaN and infinities are null. REQUIRES: the type is not
/// recursive.
nlohmann::ordered_json MessageJson(const google::protobuf::Message& message);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_MESSAGE_JSON_H_
