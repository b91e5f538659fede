#ifndef SLIPSTREAM_DEPLOY_PSCTL_CONFIG_SCHEMA_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CONFIG_SCHEMA_H_

#include <nlohmann/json_fwd.hpp>

namespace slipstream {

/// Returns a JSON Schema (draft-07, which most editors know) of run.yaml, made from the parser's
/// own table, for editors and for checks without our programs. It has keys, types, bounds, choices,
/// defaults and meanings, and the keys that apply only to certain choices of another key.
///
/// Everything that the schema refuses, the parser refuses. The parser also finds errors that
/// concern several keys, such as layers that do not fit one another.
nlohmann::ordered_json ConfigSchema();

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CONFIG_SCHEMA_H_
