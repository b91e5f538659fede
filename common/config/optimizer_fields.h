#ifndef SLIPSTREAM_COMMON_CONFIG_OPTIMIZER_FIELDS_H_
#define SLIPSTREAM_COMMON_CONFIG_OPTIMIZER_FIELDS_H_

#include <vector>

#include "common/config/field_table.h"

namespace slipstream {

/// Adds the rows of `optimizer` and `worker` to the table behind Fields().
void AddOptimizerFields(std::vector<Field>& table);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_OPTIMIZER_FIELDS_H_
