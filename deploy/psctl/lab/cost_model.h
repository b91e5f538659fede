#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_COST_MODEL_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_COST_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "deploy/psctl/lab/cells.h"
#include "deploy/psctl/lab/lab_directory.h"

namespace slipstream {

/// The expected cost of a cell.
struct CostEstimate {
  double core_seconds = 0;
  uint64_t bytes = 0;

  /// Whether cells that have been run tell the seconds. If not, a processor's usual speed does.
  bool is_learned = false;
};

/// Estimates costs from the multiplications of a cell's nets, and learns from finished cells how
/// long these take.
///
/// Not thread-safe: one owner.
class CostModel {
 public:
  explicit CostModel(GridEngine engine) : engine_(engine) {}

  /// Notes what a cell has cost.
  void Learn(const Cell& cell, const CellCost& cost);

  /// `threads`: those that the cell computes with in virtual time.
  CostEstimate Estimate(const Cell& cell, uint32_t threads) const;

  /// Returns the seconds of Estimate, which cost less to find out.
  double CoreSeconds(const Cell& cell) const;

  /// Returns how long the cell takes on `cores`.
  double WallSeconds(const Cell& cell, size_t cores) const;

 private:
  struct Sum {
    double work = 0;
    double core_seconds = 0;
    double wall_seconds = 0;
  };

  /// Returns what has been learned for mini-batches of this size, or else for all; null if nothing.
  const Sum* LearnedFor(uint32_t batch_size) const;

  const GridEngine engine_;

  // By the size of mini-batches, on which the speed depends most; 0 has all of them.
  std::map<uint32_t, Sum> learned_;

  // The most memory of a cell, by its number of workers.
  std::map<uint32_t, uint64_t> bytes_;
};

/// Returns about how much memory a cell took, of whose processes the largest held `peak` bytes.
/// The processes share the bytes of data files that they have mapped.
uint64_t CellBytes(const RunSpec& spec, GridEngine engine, uint64_t peak);

/// Returns the multiplications of one example's way through the net, forward.
double MultiplicationsPerExample(const ModelSpec& model);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_COST_MODEL_H_
