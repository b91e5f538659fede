#ifndef SLIPSTREAM_COMMON_SECURITY_SECURITY_FLAGS_H_
#define SLIPSTREAM_COMMON_SECURITY_SECURITY_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/settings/run_spec.h"

namespace slipstream {

/// Adds the flags of a client, which has no run.yaml when it connects. They correspond to the keys
/// of that file's section `security` and to their environment variables. The values are stored in
/// `security`, which must outlive the parsing.
inline void AddSecurityFlags(CLI::App& app, SecuritySpec& security) {
  const auto add = [&app](const std::string& flag, std::string& value, const std::string& variable,
                          const std::string& doc) {
    return app.add_option(flag, value, doc)->type_name("FILE")->envname(variable);
  };
  CLI::Option* const ca =
      add("--ca", security.mtls.ca, "PS_SECURITY_MTLS_CA",
          "Encrypts, and trusts servers whose certificate the authority in this file has signed");
  add("--certificate", security.mtls.certificate, "PS_SECURITY_MTLS_CERTIFICATE",
      "This process's certificate ({member}.crt beside --ca)")
      ->needs(ca);
  add("--key", security.mtls.key, "PS_SECURITY_MTLS_KEY",
      "The private key of that ({member}.key beside --ca)")
      ->needs(ca);
  add("--token", security.token, "PS_SECURITY_TOKEN",
      "A file with the run's token, or env:NAME, instead of a certificate")
      ->needs(ca);
}

/// Returns the flags that are set, as words of a command line.
inline std::vector<std::string> SecurityFlags(const SecuritySpec& security) {
  std::vector<std::string> words;
  for (const auto& [flag, value] :
       {std::pair("--ca", security.mtls.ca), std::pair("--certificate", security.mtls.certificate),
        std::pair("--key", security.mtls.key), std::pair("--token", security.token)}) {
    if (!value.empty()) words.insert(words.end(), {flag, value});
  }
  return words;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SECURITY_SECURITY_FLAGS_H_
