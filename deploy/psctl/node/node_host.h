#ifndef SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_HOST_H_
#define SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_HOST_H_

#include <string>

namespace slipstream {

/// Returns the name or address under which other machines reach this one: its own name, unless that
/// means only itself, as on Debian; then the address of a network card; "localhost" if it has none.
std::string NodeHost();

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_HOST_H_
