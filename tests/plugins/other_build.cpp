// A plugin as another version of the program would have built it.
#include "engine/contract/registry.h"

extern "C" __attribute__((visibility("default"))) const char* sluice_plugin_abi() { return "sluice=0.0.0"; }
extern "C" __attribute__((visibility("default"))) void sluice_plugin_register(sluice::engine::Registry&) {}
