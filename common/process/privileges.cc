#include "common/process/privileges.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace slipstream {
namespace {

constexpr __u32 kKept = 1U << CAP_DAC_OVERRIDE | 1U << CAP_NET_BIND_SERVICE;

}  // namespace

void DropPrivileges() {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return;
  sets[0].effective &= kKept;
  sets[0].permitted &= kKept;
  sets[1].effective = sets[1].permitted = 0;
  sets[0].inheritable = sets[1].inheritable = 0;
  // A process may always reduce its own rights, so this cannot fail.
  (void)syscall(SYS_capset, &header, sets);
}

}  // namespace slipstream
