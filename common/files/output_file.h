#ifndef SLIPSTREAM_COMMON_FILES_OUTPUT_FILE_H_
#define SLIPSTREAM_COMMON_FILES_OUTPUT_FILE_H_

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace slipstream {

/// Opens a file to be written as it grows, with `flags` such as O_APPEND, and makes it if it is not
/// there. Returns the descriptor, or -1 and sets errno. It is not opened through a symbolic link:
/// where others may write to the directory, one of them could have prepared a link that leads to
/// any file of this user.
inline int OpenOutput(const std::string& path, int flags, mode_t mode) {
  return open(path.c_str(), flags | O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
}

/// Returns why OpenOutput failed, from its errno.
inline std::string WhyNoOutput(int error) {
  return error == ELOOP ? "it is a symbolic link, through which nothing is written"
                        : std::strerror(error);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_FILES_OUTPUT_FILE_H_
