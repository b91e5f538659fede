#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_GRID_FILE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_GRID_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/config/diagnostic.h"
#include "common/config/yaml_tree.h"

namespace slipstream {

/// The engine that carries out the cells of a grid.
enum class GridEngine : uint8_t {
  kVirtual,    // ps_lab, one process in virtual time.
  kProcesses,  // psctl run.
};

/// Returns the engine's name in a grid file.
std::string_view EngineName(GridEngine engine);

/// A key of run.yaml by its whole path, or world.… of the world.
struct GridKey {
  std::string path;
  Source source;
};

/// Keys whose values change together: those of a zip, or one of the product. A value is an
/// expression if it is text that begins with "="; nothing leaves the key as the base has it.
struct GridAxis {
  std::vector<GridKey> keys;

  /// The values of all keys, for each place on the axis.
  std::vector<std::vector<YamlNode>> rows;
};

/// The shrinking of schedules: the settings are for `epochs`, and cells run for `run` epochs.
struct GridScale {
  uint32_t epochs = 1;
  uint32_t run = 1;
  Source source;
};

/// The part of the machine that cells may take together.
struct GridBudget {
  /// Absent: all that this process may use.
  std::optional<uint32_t> cores;

  /// The cores of one cell: in virtual time its threads. Absent: 1 in virtual time, and all of
  /// `cores` for processes.
  std::optional<uint32_t> cores_per_cell;

  /// In bytes. Absent: what cells need is not added up.
  std::optional<uint64_t> memory;
  Source memory_source;
};

/// Published values, which the grid's are compared with.
struct GridReference {
  std::string path;

  /// Pairs of a column of the file and a key of the grid. If it is empty, columns with the name of
  /// a key, or sigma, mu and lambda, are matched.
  std::map<std::string, std::string> match;

  /// The column with the test error in percent.
  std::string error_column = "test_error_percent";

  /// The largest difference, in percentage points, with which a value counts as reproduced. Absent:
  /// there is no verdict.
  std::optional<double> tolerance;
  Source source;
};

/// A grid as its file has it: settings of a run, and the axes along which they change. Nothing of
/// it has been expanded.
struct Grid {
  std::string path;
  std::string name;
  GridEngine engine = GridEngine::kVirtual;

  /// The settings that all cells have, a map, and the path of their file; empty if the grid's own
  /// has them.
  YamlNode base;
  std::string base_path;

  /// A map, empty if the file has none. Only ps_lab knows what it means.
  YamlNode world;

  /// Settings of all cells beside those of `base`, which may be expressions.
  std::vector<std::pair<GridKey, YamlNode>> settings;
  std::vector<GridAxis> axes;

  /// Expressions; cells for which one of them is false are left out.
  std::vector<YamlNode> where;

  /// Empty: only the seed of `base`.
  std::vector<uint64_t> seeds;
  Source seeds_source;
  std::optional<GridScale> scale;
  GridBudget budget;

  /// Whether a cell that diverged makes the grid fail; else it is a result.
  bool fails_on_divergence = false;

  /// The test error in (0, 1) that ends a cell early.
  std::optional<double> target_error;
  Source target_source;
  std::optional<GridReference> reference;
};

/// Reads a grid from `text`. The file of `base`, and the path of a reference, are relative to the
/// folder of `path`. `overrides`: settings of all cells as key=value, which take the place of those
/// under `set`.
std::variant<Grid, std::vector<Diagnostic>> ParseGrid(
    std::string_view text, const std::string& path, const std::vector<std::string>& overrides = {});

/// Reads the file at `path`.
std::variant<Grid, std::vector<Diagnostic>> LoadGrid(
    const std::string& path, const std::vector<std::string>& overrides = {});

/// The fault in the name of a key.
struct UnknownKey {
  std::string message;
};

/// Returns the whole path of a key that is named by it or by its last part, such as `workers`. Of
/// several keys with that last part it is the one with the fewest parts, and none of `testing`.
std::variant<std::string, UnknownKey> WholeKey(std::string_view name);

/// Returns the last part of a path.
std::string_view LastPart(std::string_view path);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_GRID_FILE_H_
