#ifndef SLIPSTREAM_TESTS_WORKER_DATA_NPY_ARRAY_H_
#define SLIPSTREAM_TESTS_WORKER_DATA_NPY_ARRAY_H_

#include <cstddef>
#include <string>
#include <vector>

namespace slipstream {

/// Returns a .npy file of version 1.0 as NumPy writes it. `shape` is written as in Python: "(3,
/// 4)".
template <typename Number>
std::string NpyArray(const std::string& descr, const std::string& shape,
                     const std::vector<Number>& values, bool is_fortran = false) {
  std::string dictionary = "{'descr': '" + descr +
                           "', 'fortran_order': " + (is_fortran ? "True" : "False") +
                           ", 'shape': " + shape + ", }";
  while ((10 + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string file = "\x93NUMPY";
  file += {1, 0, static_cast<char>(dictionary.size() % 256),
           static_cast<char>(dictionary.size() / 256)};
  file += dictionary;
  file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number));
  return file;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_DATA_NPY_ARRAY_H_
