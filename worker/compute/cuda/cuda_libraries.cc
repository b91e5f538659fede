#include "worker/compute/cuda/cuda_libraries.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace slipstream::cuda {
namespace {

std::string VariableOr(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

/// Returns the folders in which Pythons are installed, by the folders of their programs; the active
/// environment comes first.
std::vector<std::string> PythonRoots() {
  const std::string path = VariableOr("PATH", "") + ":/usr/local/bin:/usr/bin";
  std::vector<std::string> roots;
  for (const absl::string_view folder : absl::StrSplit(path, ':')) {
    if (absl::StartsWith(folder, "/")) roots.push_back(absl::StrCat(folder, "/.."));
  }
  return roots;
}

/// Returns the paths at which the file may be, other than those that the loader searches itself.
std::vector<std::string> PathsOf(const std::string& file) {
  std::vector<std::string> patterns = {VariableOr("CUDA_HOME", "/usr/local/cuda") + "/lib64/" +
                                       file};
  for (const std::string& root : PythonRoots()) {
    patterns.push_back(absl::StrCat(root, "/lib/python3*/*-packages/nvidia/*/lib/", file));
  }
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    glob_t found = {};
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
      paths.insert(paths.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    globfree(&found);
  }
  return paths;
}

/// A shared library that stays loaded.
class Library {
 public:
  /// `part_of` is the package that contains the file, and `otherwise` the setting that works
  /// without it; both are for the error message.
  Library(const std::string& file, const std::string& part_of, const std::string& otherwise = "cpu")
      : file_(file) {
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle_ != nullptr) return;
    const std::string error = dlerror();
    for (const std::string& path : PathsOf(file)) {
      handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (handle_ != nullptr) return;
    }
    status_ = absl::InvalidArgumentError("computing on a GPU needs " + file +
                                         ", which could not be loaded (" + error +
                                         "): install CUDA 13 with " + part_of +
                                         ", name its folder in LD_LIBRARY_PATH, or set "
                                         "compute.device to " +
                                         otherwise);
  }

  template <typename Function>
  Library& Bind(const char* name, Function& function) {
    if (!status_.ok()) return *this;
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (function == nullptr) {
      status_ = absl::InvalidArgumentError(file_ + " has no " + name +
                                           ": it is of another version than this program needs");
    }
    return *this;
  }

  const absl::Status& status() const { return status_; }

 private:
  const std::string file_;
  void* handle_ = nullptr;
  absl::Status status_;
};

absl::StatusOr<CublasLt> BindCublasLt() {
  CublasLt table = {};
  Library library("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR), "cuBLAS");
  library.Bind("cublasLtCreate", table.Create)
      .Bind("cublasLtDestroy", table.Destroy)
      .Bind("cublasLtGetStatusString", table.GetStatusString)
      .Bind("cublasLtMatmul", table.Matmul)
      .Bind("cublasLtMatmulAlgoGetHeuristic", table.MatmulAlgoGetHeuristic)
      .Bind("cublasLtMatmulDescCreate", table.MatmulDescCreate)
      .Bind("cublasLtMatmulDescDestroy", table.MatmulDescDestroy)
      .Bind("cublasLtMatmulDescSetAttribute", table.MatmulDescSetAttribute)
      .Bind("cublasLtMatmulPreferenceCreate", table.MatmulPreferenceCreate)
      .Bind("cublasLtMatmulPreferenceDestroy", table.MatmulPreferenceDestroy)
      .Bind("cublasLtMatmulPreferenceSetAttribute", table.MatmulPreferenceSetAttribute)
      .Bind("cublasLtMatrixLayoutCreate", table.MatrixLayoutCreate)
      .Bind("cublasLtMatrixLayoutDestroy", table.MatrixLayoutDestroy);
  if (!library.status().ok()) return library.status();
  return table;
}

absl::StatusOr<Cudnn> BindCudnn() {
  Cudnn table = {};
  Library library("libcudnn.so." + std::to_string(CUDNN_MAJOR), "cuDNN 9");
  library.Bind("cudnnCreate", table.Create)
      .Bind("cudnnDestroy", table.Destroy)
      .Bind("cudnnSetStream", table.SetStream)
      .Bind("cudnnGetErrorString", table.GetErrorString)
      .Bind("cudnnCreateTensorDescriptor", table.CreateTensorDescriptor)
      .Bind("cudnnDestroyTensorDescriptor", table.DestroyTensorDescriptor)
      .Bind("cudnnSetTensor4dDescriptor", table.SetTensor4dDescriptor)
      .Bind("cudnnCreateFilterDescriptor", table.CreateFilterDescriptor)
      .Bind("cudnnDestroyFilterDescriptor", table.DestroyFilterDescriptor)
      .Bind("cudnnSetFilter4dDescriptor", table.SetFilter4dDescriptor)
      .Bind("cudnnCreateConvolutionDescriptor", table.CreateConvolutionDescriptor)
      .Bind("cudnnDestroyConvolutionDescriptor", table.DestroyConvolutionDescriptor)
      .Bind("cudnnSetConvolution2dDescriptor", table.SetConvolution2dDescriptor)
      .Bind("cudnnSetConvolutionMathType", table.SetConvolutionMathType)
      .Bind("cudnnGetConvolutionForwardAlgorithm_v7", table.GetConvolutionForwardAlgorithm)
      .Bind("cudnnGetConvolutionBackwardDataAlgorithm_v7",
            table.GetConvolutionBackwardDataAlgorithm)
      .Bind("cudnnGetConvolutionBackwardFilterAlgorithm_v7",
            table.GetConvolutionBackwardFilterAlgorithm)
      .Bind("cudnnFindConvolutionForwardAlgorithm", table.FindConvolutionForwardAlgorithm)
      .Bind("cudnnFindConvolutionBackwardDataAlgorithm", table.FindConvolutionBackwardDataAlgorithm)
      .Bind("cudnnFindConvolutionBackwardFilterAlgorithm",
            table.FindConvolutionBackwardFilterAlgorithm)
      .Bind("cudnnGetConvolutionForwardWorkspaceSize", table.GetConvolutionForwardWorkspaceSize)
      .Bind("cudnnGetConvolutionBackwardDataWorkspaceSize",
            table.GetConvolutionBackwardDataWorkspaceSize)
      .Bind("cudnnGetConvolutionBackwardFilterWorkspaceSize",
            table.GetConvolutionBackwardFilterWorkspaceSize)
      .Bind("cudnnConvolutionForward", table.ConvolutionForward)
      .Bind("cudnnConvolutionBackwardData", table.ConvolutionBackwardData)
      .Bind("cudnnConvolutionBackwardFilter", table.ConvolutionBackwardFilter);
  if (!library.status().ok()) return library.status();
  return table;
}

absl::StatusOr<Nccl> BindNccl() {
  Nccl table = {};
  Library library("libnccl.so." + std::to_string(NCCL_MAJOR), "NCCL", "one GPU");
  library.Bind("ncclCommInitAll", table.CommInitAll)
      .Bind("ncclCommDestroy", table.CommDestroy)
      .Bind("ncclCommAbort", table.CommAbort)
      .Bind("ncclCommGetAsyncError", table.CommGetAsyncError)
      .Bind("ncclGetErrorString", table.GetErrorString)
      .Bind("ncclGroupStart", table.GroupStart)
      .Bind("ncclGroupEnd", table.GroupEnd)
      .Bind("ncclReduce", table.Reduce);
  if (!library.status().ok()) return library.status();
  return table;
}

template <typename Table>
absl::StatusOr<const Table*> PointerTo(const absl::StatusOr<Table>& loaded) {
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

}  // namespace

absl::StatusOr<const CublasLt*> CublasLt::Load() {
  static const absl::StatusOr<CublasLt> kLoaded = BindCublasLt();
  return PointerTo(kLoaded);
}

absl::StatusOr<const Cudnn*> Cudnn::Load() {
  static const absl::StatusOr<Cudnn> kLoaded = BindCudnn();
  return PointerTo(kLoaded);
}

absl::StatusOr<const Nccl*> Nccl::Load() {
  static const absl::StatusOr<Nccl> kLoaded = BindNccl();
  return PointerTo(kLoaded);
}

}  // namespace slipstream::cuda
