#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "common/config/run_config.h"
#include "common/config/run_text.h"
#include "common/config/server_address.h"
#include "common/wire/wire_text.h"
#include "server/listen/peer_name.h"
#include "server/storage/checkpoint_manifest.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_target.h"

namespace slipstream {
namespace {

/// Returns the parts after the first as overrides: variables if they begin with PS_, otherwise
/// flags.
Overrides OverridesOf(const std::vector<std::string_view>& parts) {
  Overrides overrides;
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string part(parts[i]);
    const size_t equals = part.find('=');
    if (part.starts_with("PS_") && equals != part.npos) {
      overrides.environment[part.substr(0, equals)] = part.substr(equals + 1);
    } else {
      overrides.set.push_back(part);
    }
  }
  return overrides;
}

}  // namespace

void FuzzRunConfig(std::string_view input) {
  const std::vector<std::string_view> parts = PartsOf(input);
  const ConfigResult result = ParseRunConfig(parts[0], "run.yaml", OverridesOf(parts));
  if (const auto* wrong = std::get_if<std::vector<Diagnostic>>(&result)) {
    PS_CHECK(!wrong->empty());
    PS_CHECK(wrong->size() <= DiagnosticList::kDiagnosticsMax + 1);
    PS_CHECK(!ToString(*wrong).empty());
    return;
  }
  // A coordinator sends settings as text, and the receiver must get the same settings.
  const auto& spec = std::get<RunSpec>(result);
  const std::string text = ToYaml(spec);
  PS_CHECK(!FirstNotUtf8(text).has_value());
  const ConfigResult again = ParseRunConfig(text, "settings");
  PS_CHECK(std::holds_alternative<RunSpec>(again));
  PS_CHECK(std::get<RunSpec>(again) == spec);
  PS_CHECK(Fingerprint(std::get<RunSpec>(again)) == Fingerprint(spec));
}

void FuzzCheckpointManifest(std::string_view input) {
  (void)ParseManifest(input);
  const std::string text = WithChecksum(std::string(input));
  const absl::StatusOr<CheckpointManifest> manifest = ParseManifest(text);
  if (manifest.ok()) PS_CHECK(EncodeManifest(*manifest) == text);
}

void FuzzPeerName(std::string_view input) {
  const PeerName name = PeerNameOf(input);
  const std::string text = TextOf(name);
  if (name.first.empty()) {
    PS_CHECK(text == "?");
    return;
  }
  const PeerName again = PeerNameOf((text.starts_with('[') ? "ipv6:" : "ipv4:") + text);
  PS_CHECK(again == name);
}

void FuzzServerAddress(std::string_view input) {
  const std::optional<ServerAddress> address = ParseServerAddress(input);
  PS_CHECK(AddressError(std::string(input)).empty() == address.has_value());
  if (!address.has_value()) return;
  (void)address->IsLoopback();
  PS_CHECK(ParseServerAddress(address->ToString()) == address);
}

void FuzzWireText(std::string_view input) {
  FuzzInput rest(input);
  const size_t bytes_max = rest.Take<uint8_t>();
  const std::string text = WireText(rest.rest(), bytes_max);
  PS_CHECK(text.size() <= bytes_max);
  PS_CHECK(!FirstNotUtf8(text).has_value());
}

}  // namespace slipstream
