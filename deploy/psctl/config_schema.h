#ifndef SLIPSTREAM_DEPLOY_PSCTL_CONFIG_SCHEMA_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CONFIG_SCHEMA_H_

#include <nlohmann/json.hpp>

namespace slipstream {

/// A JSON Schema of run.yaml, made from the table that the parser reads by, for editors and for
/// checks without our programs: keys, types, bounds, choices, defaults, meanings, and which keys
/// mean something only beside another one's choice. Of draft-07, which editors know best.
///
/// What the schema refuses, the parser refuses; the parser also finds what concerns several keys,
/// such as layers that do not fit one another.
nlohmann::ordered_json ConfigSchema();

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CONFIG_SCHEMA_H_
