#include "engine/check_draft.h"
namespace sluice::engine::checking {
void check_memory(Draft&) {}
}
