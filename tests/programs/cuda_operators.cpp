// Which of the operators named on standard input, a line each, have no kernel for CUDA in the library that is given: printed, a
// line each. The dispatcher is asked, of which a library is known once it is loaded: no driver, no GPU. An operator that LibTorch
// composes of others counts as having one; those others are asked for on their own.
//
// usage: sluice_cuda_operators LIBTORCH_CUDA. Ends with 1 when the library cannot be loaded, or an operator is not known at all.
#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>

#include <iostream>
#include <string>

namespace {

bool has_cuda_kernel(const c10::OperatorHandle& op) { return op.hasComputedKernelForDispatchKey(c10::DispatchKey::CUDA); }

// "aten::mm.dtype"
c10::OperatorName parsed(const std::string& text) {
  const size_t dot = text.find('.');
  return dot == std::string::npos ? c10::OperatorName{text, ""} : c10::OperatorName{text.substr(0, dot), text.substr(dot + 1)};
}

}  // namespace

int main(int count, char** words) {
  // Lazily: of what that library needs, functions that nobody calls need not be there.
  if (count != 2 || ::dlopen(words[1], RTLD_LAZY | RTLD_GLOBAL) == nullptr) {
    std::cerr << (count == 2 ? ::dlerror() : "usage: sluice_cuda_operators LIBTORCH_CUDA") << "\n";
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const auto op = c10::Dispatcher::singleton().findSchema(parsed(line));
    if (!op) {
      std::cerr << line << " is no operator\n";
      return 1;
    }
    if (!has_cuda_kernel(*op)) std::cout << line << "\n";
  }
  return 0;
}
