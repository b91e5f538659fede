// Ranks that all-reduce a model of floats. Rank 0 takes the commands of exchange_commands.h for
// all.
//
//   mpirun -np 2 mpi_allreduce BYTES
//
// The program is built with mpicxx, as nothing else needs OpenMPI, so it includes none of our
// headers.

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Reads the number of exchanges of the next command. Returns 0 at the end of stdin.
int ReadCount() {
  std::string command;
  int count = 0;
  return std::cin >> command >> count ? count : 0;
}

/// Returns the next count, the same on all ranks. OpenMPI waits in a busy loop, which would take
/// the processor from contenders whose turn it is; so this polls with pauses.
int NextCount(int rank) {
  int count = rank == 0 ? ReadCount() : 0;
  MPI_Request request;
  MPI_Ibcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
  for (int is_there = 0;;) {
    MPI_Test(&request, &is_there, MPI_STATUS_IGNORE);
    if (is_there != 0) return count;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto values = static_cast<size_t>(std::atoll(argc > 1 ? argv[1] : "0")) / sizeof(float);
  const std::vector<float> gradient(values, 1.0f);
  std::vector<float> sum(values);
  if (rank == 0) std::cout << "ready" << std::endl;
  for (int count = NextCount(rank); count > 0; count = NextCount(rank)) {
    std::vector<double> seconds;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < count; ++i) {
      const double begun = MPI_Wtime();
      MPI_Allreduce(gradient.data(), sum.data(), static_cast<int>(values), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
      seconds.push_back(MPI_Wtime() - begun);
    }
    const double total = MPI_Wtime() - begin;
    std::sort(seconds.begin(), seconds.end());
    if (rank == 0) std::cout << "done " << total << " " << seconds[seconds.size() / 2] << std::endl;
  }
  MPI_Finalize();
  return 0;
}
