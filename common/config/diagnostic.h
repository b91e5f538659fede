#ifndef SLIPSTREAM_COMMON_CONFIG_DIAGNOSTIC_H_
#define SLIPSTREAM_COMMON_CONFIG_DIAGNOSTIC_H_

#include <string>
#include <vector>

namespace slipstream {

/// The place where a setting was written. Lines and columns count from 1, columns in bytes; line 0
/// means that `file` names the whole place, as `--set training.epochs=3` or `environment PS_SEED`
/// do.
struct Source {
  std::string file;
  int line = 0;
  int column = 0;

  friend bool operator==(const Source&, const Source&) = default;
};

/// One error in a configuration, and its place.
struct Diagnostic {
  Source source;
  std::string message;

  /// `file:line:column: error: message`, or `place: error: message`.
  std::string ToString() const;

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// Collects errors, so that a reader reports everything in one pass.
///
/// Not thread-safe: one owner.
class DiagnosticList {
 public:
  /// After this many errors, further ones are only counted: a file of another kind is not worth a
  /// flood.
  static constexpr size_t kDiagnosticsMax = 100;

  void Report(Source source, std::string message);

  bool empty() const { return diagnostics_.empty(); }

  /// True if further errors are only counted, so that their messages need not be made.
  bool is_full() const { return diagnostics_.size() == kDiagnosticsMax; }

  /// Returns the errors grouped by file, in the order of the files' first errors, and within a file
  /// by position.
  std::vector<Diagnostic> Sorted() const;

 private:
  std::vector<Diagnostic> diagnostics_;
  size_t left_out_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_DIAGNOSTIC_H_
