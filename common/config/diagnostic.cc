#include "common/config/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace slipstream {

std::string Diagnostic::ToString() const {
  if (source.line == 0) return fmt::format("{}: error: {}", source.file, message);
  return fmt::format("{}:{}:{}: error: {}", source.file, source.line, source.column, message);
}

void DiagnosticList::Report(Source source, std::string message) {
  if (is_full()) {
    ++left_out_;
    return;
  }
  diagnostics_.push_back({std::move(source), std::move(message)});
}

std::vector<Diagnostic> DiagnosticList::Sorted() const {
  std::map<std::string, size_t> ranks;
  for (const Diagnostic& diagnostic : diagnostics_) {
    ranks.emplace(diagnostic.source.file, ranks.size());
  }
  std::vector<Diagnostic> sorted = diagnostics_;
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Diagnostic& a, const Diagnostic& b) {
    return std::tuple(ranks.at(a.source.file), a.source.line, a.source.column) <
           std::tuple(ranks.at(b.source.file), b.source.line, b.source.column);
  });
  if (left_out_ > 0) {
    sorted.push_back({sorted.back().source, fmt::format("and {} more errors", left_out_)});
  }
  return sorted;
}

}  // namespace slipstream
