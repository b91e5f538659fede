#ifndef SLIPSTREAM_COMMON_CONFIG_RUN_DRAFT_H_
#define SLIPSTREAM_COMMON_CONFIG_RUN_DRAFT_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/config/diagnostic.h"
#include "common/config/field_types.h"
#include "common/run/run_spec.h"

namespace slipstream {

/// Where a value came from; later ones override earlier ones.
enum class Origin { kDefault, kFile, kEnvironment, kFlag };

/// How one key was given.
struct Given {
  Origin origin = Origin::kDefault;
  Source key;
  Source value;
  std::vector<Source> items;  // Of a list.
  bool is_valid = false;      // False if something about it was reported.

  /// The value that weaker sources give, or the default; and whether this one is another.
  FieldValue weaker;
  bool changes = false;
};

/// A run while it is being read: the settings so far and where each was written, so that checks
/// across keys can point at a line.
struct RunDraft {
  RunSpec spec;
  std::map<std::string, Given, std::less<>> given;  // By path.
  std::map<std::string, Source, std::less<>> sections;
  std::set<std::string, std::less<>> unreadable_sections;  // Reported; what was in them is unknown.
  Source start;                                            // Of the file.

  bool IsGiven(std::string_view path) const { return given.contains(path); }
  Origin OriginOf(std::string_view path) const;

  /// Its source says something else than weaker ones do.
  bool Changes(std::string_view path) const;

  /// False if the value of `path` or its section is wrong, and therefore not what the user meant.
  bool IsUsable(std::string_view path) const;

  /// The key, or else the section it would be in, or else the start of the file.
  Source KeySource(std::string_view path) const;

  /// The item of the list at `path`, or else its key.
  Source ItemSource(std::string_view path, size_t item) const;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_RUN_DRAFT_H_
