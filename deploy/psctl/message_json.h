#ifndef SLIPSTREAM_DEPLOY_PSCTL_MESSAGE_JSON_H_
#define SLIPSTREAM_DEPLOY_PSCTL_MESSAGE_JSON_H_

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

namespace slipstream {

/// The message with the field names of the .proto file. Unlike protobuf's own JSON it prints every
/// field, so that a script finds each of them in every phase (a message that is not there as one
/// of defaults, an `optional` scalar as null), and 64-bit integers as numbers with all their
/// digits. Enumerations are names; what JSON has no number for is null.
/// REQUIRES: the type is not recursive.
nlohmann::ordered_json MessageJson(const google::protobuf::Message& message);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_MESSAGE_JSON_H_
