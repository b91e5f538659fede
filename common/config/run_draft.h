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
#include "common/settings/run_spec.h"

namespace slipstream {

/// The source of a value; later ones override earlier ones.
enum class Origin { kDefault, kFile, kEnvironment, kFlag };

/// How one key was given.
struct Given {
  Origin origin = Origin::kDefault;
  Source key;
  Source value;
  std::vector<Source> items;  // The places of a list's items.
  bool is_valid = false;      // False if anything about the value was reported.

  /// The value of the weaker sources, or else the default; and whether this value differs from it.
  FieldValue weaker;
  bool changes = false;

  /// Set if not the key was given, but one that brings this value along.
  bool is_brought = false;
};

/// A run while it is being read: the settings so far and where each was written, so that checks
/// across keys can point at a line.
struct RunDraft {
  RunSpec spec;
  std::map<std::string, Given, std::less<>> given;  // By path.
  std::map<std::string, Source, std::less<>> sections;
  // Sections that were reported; their keys are unknown.
  std::set<std::string, std::less<>> unreadable_sections;
  Source start;  // The start of the file.

  bool IsGiven(std::string_view path) const { return given.contains(path); }
  Origin OriginOf(std::string_view path) const;

  /// Returns whether the value of `path` differs from that of the weaker sources.
  bool Changes(std::string_view path) const;

  /// Returns false if the value of `path` or its section is wrong, and so not what the user meant.
  bool IsUsable(std::string_view path) const;

  /// Returns the place of the key, or else of the section it would be in, or else the start of the
  /// file.
  Source KeySource(std::string_view path) const;

  /// Returns the place of an item of the list at `path`, or else of its key.
  Source ItemSource(std::string_view path, size_t item) const;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_RUN_DRAFT_H_
