#ifndef SLIPSTREAM_COMMON_SETTINGS_SECURITY_SPEC_H_
#define SLIPSTREAM_COMMON_SETTINGS_SECURITY_SPEC_H_

#include <string>

namespace slipstream {

/// Files in PEM form; server-local. `{member}` in a path stands for the process's name, such as
/// server-0.
struct MtlsSpec {
  /// The certificates of the authorities that sign those of all members. If empty, nothing is
  /// encrypted.
  std::string ca;

  // By default {member}.crt and {member}.key beside `ca`.
  std::string certificate;
  std::string key;

  friend bool operator==(const MtlsSpec&, const MtlsSpec&) = default;
};

struct SecuritySpec {
  /// Unless this is set, or there is encryption, servers off loopback are refused.
  bool accept_plaintext_risk = false;
  MtlsSpec mtls;

  /// A file with the run's tokens, or env:NAME; empty for none. A client that shows one needs no
  /// certificate.
  std::string token;

  bool is_encrypted() const { return !mtls.ca.empty(); }

  /// Returns whether servers may listen where others can reach them.
  bool may_leave_machine() const { return is_encrypted() || accept_plaintext_risk; }

  friend bool operator==(const SecuritySpec&, const SecuritySpec&) = default;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_SECURITY_SPEC_H_
