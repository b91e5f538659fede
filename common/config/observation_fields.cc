#include "common/config/observation_fields.h"

#include "common/config/field_builders.h"

namespace slipstream {

void AddObservationFields(std::vector<Field>& table) {
  constexpr auto kServer = Field::Locality::kServer;
  table.push_back(Local(kServer, Choice(
                                     "log.level", "The lowest level that is logged.",
                                     {"debug", "info", "warning", "error"},
                                     [](auto& s) -> auto& { return s.log.level; })));
  table.push_back(
      Local(kServer, Choice(
                         "log.format", "Lines of text, or one JSON object per line.",
                         {"text", "json"}, [](auto& s) -> auto& { return s.log.format; })));
  table.push_back(Local(
      kServer, Scalar(
                   "log.push_log", "The directory for one push log per shard; empty for none.",
                   TextType{}, [](auto& s) -> auto& { return s.log.push_log; })));
  table.push_back(Local(
      kServer,
      Scalar(
          "http.listen",
          "Where a server answers over HTTP: /metrics, /status.json, /livez, /readyz. host:port, "
          "with port 0 for any that is free, which psctl status shows; or none. On loopback it is "
          "not "
          "encrypted; elsewhere it is if security.mtls is set.",
          TextType{}, [](auto& s) -> auto& { return s.http.listen; })));
}

}  // namespace slipstream
