#ifndef SLIPSTREAM_COMMON_SETTINGS_HTTP_SPEC_H_
#define SLIPSTREAM_COMMON_SETTINGS_HTTP_SPEC_H_

#include <string>
#include <string_view>

namespace slipstream {

/// The HTTP port of a server, for figures and checks of its health.
struct HttpSpec {
  /// host:port, where port 0 is any that is free; or kNone. Server-local.
  std::string listen = "localhost:0";

  static constexpr std::string_view kNone = "none";

  friend bool operator==(const HttpSpec&, const HttpSpec&) = default;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_HTTP_SPEC_H_
