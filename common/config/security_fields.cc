#include "common/config/security_fields.h"

#include <string>
#include <utility>

#include "common/config/field_builders.h"

namespace slipstream {

void AddSecurityFields(std::vector<Field>& table) {
  constexpr auto kServer = Field::Locality::kServer;
  const auto file = [&](std::string path, std::string doc, std::string example, auto access) {
    table.push_back(Local(kServer, Scalar(std::move(path), std::move(doc), TextType{}, access)));
    table.back().example = std::move(example);
  };
  table.push_back(Choice(
      "security.plaintext",
      "Without mtls nothing is encrypted: servers off this machine need accept_the_risk then.",
      {"loopback_only", "accept_the_risk"},
      [](auto& s) -> auto& { return s.security.accept_plaintext_risk; }));
  file(
      "security.mtls.ca",
      "Encrypts what goes over TCP: the file with the certificate of the authority that signs "
      "those of servers, workers and operators (psctl certs init makes one). {member} in the "
      "paths of this section stands for server-0, worker-3, worker (its id is left open) or "
      "operator.",
      "certs/ca.crt", [](auto& s) -> auto& { return s.security.mtls.ca; });
  file(
      "security.mtls.certificate",
      "The process's own certificate; by default {member}.crt beside the authority's.",
      "certs/{member}.crt", [](auto& s) -> auto& { return s.security.mtls.certificate; });
  file(
      "security.mtls.key",
      "The private key of the certificate; by default {member}.key beside the authority's "
      "certificate.",
      "certs/{member}.key", [](auto& s) -> auto& { return s.security.mtls.key; });
  file(
      "security.token",
      "A file with the run's token, or env:NAME for a variable's: workers and psctl that show it "
      "need no certificate of their own.",
      "certs/token", [](auto& s) -> auto& { return s.security.token; });
}

}  // namespace slipstream
