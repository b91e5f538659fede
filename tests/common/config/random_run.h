#ifndef SLIPSTREAM_TESTS_COMMON_CONFIG_RANDOM_RUN_H_
#define SLIPSTREAM_TESTS_COMMON_CONFIG_RANDOM_RUN_H_

#include "common/base/philox.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// Returns the defaults, with a model.
RunSpec DefaultRun();

/// Returns settings that pass every check: each key is random, and then keys are made to agree.
RunSpec RandomRun(RandomStream& random);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_COMMON_CONFIG_RANDOM_RUN_H_
