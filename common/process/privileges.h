#ifndef SLIPSTREAM_COMMON_PROCESS_PRIVILEGES_H_
#define SLIPSTREAM_COMMON_PROCESS_PRIVILEGES_H_

namespace slipstream {

/// Gives up, for good, rights that a program with open ports never needs. No program that it might
/// start gains any rights (no_new_privs). Of root's capabilities only two stay, since programs in
/// containers often run as root: to open other users' files (CAP_DAC_OVERRIDE), and ports below
/// 1024 (CAP_NET_BIND_SERVICE). Call it before there are other threads.
void DropPrivileges();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_PRIVILEGES_H_
