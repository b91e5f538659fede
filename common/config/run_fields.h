#ifndef SLIPSTREAM_COMMON_CONFIG_RUN_FIELDS_H_
#define SLIPSTREAM_COMMON_CONFIG_RUN_FIELDS_H_

#include <vector>

#include "common/config/field_table.h"

namespace slipstream {

/// The rows of the table behind Fields(): a new setting is one more entry here and its member in
/// RunSpec.
std::vector<Field> RunFields();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_RUN_FIELDS_H_
