#include "comm/nccl_library.h"

#include <dlfcn.h>

#include <type_traits>

namespace sluice::comm {

std::shared_ptr<const NcclLibrary> NcclLibrary::load(const std::string& file) {
  void* const loaded = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return nullptr;
  auto library = std::make_shared<NcclLibrary>();
  const auto get = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(loaded, name));
    return function != nullptr;
  };
  const bool has_all = get(library->make_id, "ncclGetUniqueId") && get(library->join, "ncclCommInitRank") &&
                       get(library->abort, "ncclCommAbort") && get(library->destroy, "ncclCommDestroy") &&
                       get(library->send, "ncclSend") && get(library->receive, "ncclRecv") &&
                       get(library->begin_group, "ncclGroupStart") && get(library->end_group, "ncclGroupEnd") &&
                       get(library->text_of, "ncclGetErrorString");
  return has_all ? library : nullptr;
}

}  // namespace sluice::comm
