#ifndef SLIPSTREAM_COMMON_CONFIG_RUN_FIELDS_H_
#define SLIPSTREAM_COMMON_CONFIG_RUN_FIELDS_H_

#include <vector>

#include "common/config/field_table.h"

namespace slipstream {

/// Returns the rows of the table behind Fields(). A new setting needs one more row here and a
/// member in RunSpec.
std::vector<Field> RunFields();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_RUN_FIELDS_H_
