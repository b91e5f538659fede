#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_ONE_THREAD_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_ONE_THREAD_H_

namespace slipstream {

/// While a scope exists, oneDNN's calls from this thread use only this thread.
///
/// oneDNN runs on OpenMP, whose default is a thread per core. A worker shares its machine with
/// others, and oneDNN's results depend on the number of threads; so every call into it, and every
/// preparation of a primitive, happens under such a scope.
class OneThreadScope {
 public:
  OneThreadScope();
  ~OneThreadScope();
  OneThreadScope(const OneThreadScope&) = delete;
  OneThreadScope& operator=(const OneThreadScope&) = delete;

 private:
  const int threads_before_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_ONE_THREAD_H_
