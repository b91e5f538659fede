#ifndef SLIPSTREAM_DEPLOY_PSCTL_SCHEMA_TYPES_H_
#define SLIPSTREAM_DEPLOY_PSCTL_SCHEMA_TYPES_H_

#include <nlohmann/json.hpp>

#include "common/config/field_types.h"

namespace slipstream {

/// The schema of what one key may hold, without its meaning and default. Bounds that a pattern
/// cannot say, those of times and of bytes with a unit, are left to the parser.
nlohmann::ordered_json TypeSchema(const FieldType& type);

/// A value as a file would have it: times and bytes as text with their unit.
nlohmann::ordered_json ValueJson(const FieldType& type, const FieldValue& value);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_SCHEMA_TYPES_H_
