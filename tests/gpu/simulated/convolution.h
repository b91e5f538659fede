#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_CONVOLUTION_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_CONVOLUTION_H_

namespace slipstream::simulated {

/// The shape of images [count, channels, height, width], row-major.
struct Images {
  int count = 0;
  int channels = 0;
  int height = 0;
  int width = 0;

  int plane() const { return height * width; }
  int size() const { return count * channels * plane(); }
};

/// Cross-correlation of `input` with filters [out.channels, in.channels, height, width].
struct Convolution {
  Images in;
  Images filters;  // `count` filters.
  Images out;
  int padding = 0;
  int stride = 1;

  /// The index of the term that is added first. Any number will do.
  unsigned first = 0;

  bool Fits() const;

  /// Computes out = input * filters.
  void Forward(const float* input, const float* filter, float* output) const;

  /// Compute the gradients of filter and input from `gradient`, that of the output.
  void FilterGradient(const float* input, const float* gradient, float* filter_gradient) const;
  void InputGradient(const float* filter, const float* gradient, float* input_gradient) const;

 private:
  template <typename Row>
  void ForEachRow(Row row) const;
};

}  // namespace slipstream::simulated

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_CONVOLUTION_H_
