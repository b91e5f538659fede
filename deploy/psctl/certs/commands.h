#ifndef SLIPSTREAM_DEPLOY_PSCTL_CERTS_COMMANDS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CERTS_COMMANDS_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

// Each returns psctl's exit code. The files that they write can be read by their owner alone.

/// psctl certs init: makes an authority and the members' certificates in a directory, as run.yaml's
/// `security.mtls` expects them there. Files that are there stay, so that members can be added;
/// where one contradicts the arguments, nothing is made.
int CertsInitCommand(const CertsInitArguments& arguments);

/// psctl certs show: tells for whom each certificate of a directory is, until when, and what is
/// wrong with it.
int CertsShowCommand(const CertsShowArguments& arguments);

/// psctl certs renew: replaces the members' certificates by ones that last longer, for the same
/// keys. Running processes take them within seconds. A certificate that the authority has not
/// signed, or whose file is not named after its member, is left alone and reported.
int CertsRenewCommand(const CertsRenewArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CERTS_COMMANDS_H_
