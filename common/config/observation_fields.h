#ifndef SLIPSTREAM_COMMON_CONFIG_OBSERVATION_FIELDS_H_
#define SLIPSTREAM_COMMON_CONFIG_OBSERVATION_FIELDS_H_

#include <vector>

#include "common/config/field_table.h"

namespace slipstream {

/// Adds the rows of `log` and `http` to the table behind Fields(): where a run can be observed.
void AddObservationFields(std::vector<Field>& table);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_OBSERVATION_FIELDS_H_
