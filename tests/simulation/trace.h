#ifndef SLIPSTREAM_TESTS_SIMULATION_TRACE_H_
#define SLIPSTREAM_TESTS_SIMULATION_TRACE_H_

#include <fmt/format.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "deploy/lab/event_queue.h"

namespace slipstream {

/// The events of a run as lines of text. They are written out on request, and always condensed into
/// one number, by which two runs are compared.
///
/// Not thread-safe: one owner. `queue`, and `out` if it is not null, must outlive it.
class Trace {
 public:
  Trace(const EventQueue& queue, std::ostream* out) : queue_(queue), out_(out) {}

  template <typename... Arguments>
  void Line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    const int64_t now = absl::ToUnixMicros(queue_.now());
    std::string line = fmt::format("{:10.3f} ms  ", static_cast<double>(now) / 1000);
    line += fmt::format(format, std::forward<Arguments>(arguments)...);
    line += '\n';
    for (const char letter : line) {
      digest_ = (digest_ ^ static_cast<unsigned char>(letter)) * 0x100000001B3u;  // FNV-1a.
    }
    if (out_ != nullptr) *out_ << line;
  }

  uint64_t digest() const { return digest_; }

 private:
  const EventQueue& queue_;
  std::ostream* const out_;
  uint64_t digest_ = 0xCBF29CE484222325u;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_TRACE_H_
