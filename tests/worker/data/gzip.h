#ifndef SLIPSTREAM_TESTS_WORKER_DATA_GZIP_H_
#define SLIPSTREAM_TESTS_WORKER_DATA_GZIP_H_

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <vector>

namespace slipstream {

/// Returns `plain` as a gzip file.
inline std::vector<uint8_t> Gzip(std::vector<uint8_t> plain) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::vector<uint8_t> packed(deflateBound(&stream, plain.size()) + 32);
  stream.next_in = plain.data();
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_DATA_GZIP_H_
