#ifndef SLIPSTREAM_COMMON_PROCESS_PRIVILEGES_H_
#define SLIPSTREAM_COMMON_PROCESS_PRIVILEGES_H_

namespace slipstream {

/// Gives up, for good, rights that a program with open ports never needs: no program that it might
/// start gains any (no_new_privs), and of the capabilities that root has only those stay that open
/// other users' files (CAP_DAC_OVERRIDE) and ports below 1024 (CAP_NET_BIND_SERVICE), as
/// containers' programs often run as root. To be called before there are other threads.
void DropPrivileges();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_PRIVILEGES_H_
