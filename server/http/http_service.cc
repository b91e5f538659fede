#include "server/http/http_service.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/log/log.h"

namespace slipstream {

absl::StatusOr<std::unique_ptr<HttpService>> HttpService::Listen(const HttpSpec& settings,
                                                                 std::string public_host,
                                                                 CredentialFiles credentials) {
  const std::optional<ServerAddress> address = ParseAddressToListenOn(settings.listen);
  PS_CHECK(address.has_value());
  HttpPort::Options options = {.host = address->host, .port = address->port};
  if (!address->IsLoopback()) options.credentials = std::move(credentials);
  absl::StatusOr<std::unique_ptr<HttpPort>> port = HttpPort::Listen(std::move(options));
  if (port.ok()) {
    return std::unique_ptr<HttpService>(
        new HttpService(*address, std::move(public_host), *std::move(port)));
  }
  return absl::Status(
      port.status().code(),
      fmt::format("{}; http.listen is {}: see that no other process has the port, or set another "
                  "with --http HOST:PORT, where port 0 is any that is free, or none",
                  std::string(port.status().message()), settings.listen));
}

std::string HttpService::url() const {
  return fmt::format("{}://{}:{}", port_->is_encrypted() ? "https" : "http",
                     address_.IsWildcard() ? public_host_ : address_.host, port_->port());
}

absl::Status HttpService::Start(HttpPages::Options pages) {
  if (!port_->is_encrypted()) pages.access = nullptr;
  pages.is_loopback_only = address_.IsLoopback();
  pages_ = std::make_unique<HttpPages>(std::move(pages));
  LogInfo("answers over HTTP", {{"at", url()}});
  return port_->Start([this](const HttpPort::Request& request) { return pages_->Answer(request); });
}

}  // namespace slipstream
