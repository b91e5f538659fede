#ifndef SLIPSTREAM_COMMON_CONFIG_SECURITY_FIELDS_H_
#define SLIPSTREAM_COMMON_CONFIG_SECURITY_FIELDS_H_

#include <vector>

#include "common/config/field_table.h"

namespace slipstream {

/// Adds the rows of `security` to the table behind Fields().
void AddSecurityFields(std::vector<Field>& table);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_SECURITY_FIELDS_H_
