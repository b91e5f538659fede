#ifndef SLIPSTREAM_COMMON_WIRE_SHARD_WIRE_H_
#define SLIPSTREAM_COMMON_WIRE_SHARD_WIRE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/encoding.h"
#include "common/protocol/shard_messages.h"
#include "proto/shard.pb.h"

namespace slipstream {

/// Converts the data plane's headers to protobuf messages and back. Input from a peer that breaks
/// the contract of proto/shard.proto gives INVALID_ARGUMENT with the field's name. The cores make
/// the checks that need knowledge of the run (who, which version, how many values).

v1::Encoding ToWire(Encoding encoding);
v1::Identity ToWire(const Identity& identity);
v1::PushHeader ToWire(const PushHeader& header);
v1::PushReply ToWire(const PushReply& reply);
v1::PullRequest ToWire(const PullRequest& request);
v1::RoundWork ToWire(const RoundWork& work);
v1::WeightsHeader ToWire(const WeightsHeader& header);
v1::WeightsTrailer ToWire(const WeightsTrailer& trailer);
v1::Stamp ToWire(const Stamp& stamp);
v1::InitializeHeader ToWire(const InitializeHeader& header);

/// `field` names the field in errors.
absl::StatusOr<Encoding> FromWire(std::string_view field, v1::Encoding wire);
Identity FromWire(const v1::Identity& wire);  // Every value is possible, so this cannot fail.
absl::StatusOr<PushHeader> FromWire(const v1::PushHeader& wire);
absl::StatusOr<PushReply> FromWire(const v1::PushReply& wire);
absl::StatusOr<PullRequest> FromWire(const v1::PullRequest& wire);
absl::StatusOr<RoundWork> FromWire(const v1::RoundWork& wire);
absl::StatusOr<WeightsHeader> FromWire(const v1::WeightsHeader& wire);
WeightsTrailer FromWire(const v1::WeightsTrailer& wire);
Stamp FromWire(const v1::Stamp& wire);
absl::StatusOr<InitializeHeader> FromWire(const v1::InitializeHeader& wire);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_SHARD_WIRE_H_
