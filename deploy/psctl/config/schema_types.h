#ifndef SLIPSTREAM_DEPLOY_PSCTL_CONFIG_SCHEMA_TYPES_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CONFIG_SCHEMA_TYPES_H_

#include <nlohmann/json_fwd.hpp>

#include "common/config/field_types.h"

namespace slipstream {

/// Returns the schema of one key's values, without its meaning and default. A pattern cannot
/// express the bounds of times and of bytes with a unit; the parser checks those.
nlohmann::ordered_json TypeSchema(const FieldType& type);

/// Returns a value as a file has it. Times and bytes are text with a unit.
nlohmann::ordered_json ValueJson(const FieldType& type, const FieldValue& value);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CONFIG_SCHEMA_TYPES_H_
