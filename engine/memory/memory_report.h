#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// One class of memory, as the plan predicted it and as it was measured.
struct MemoryClass {
  std::string name;
  int64_t planned_bytes = 0;
  int64_t peak_bytes = 0;  // the most at a time; the peaks of several classes need not have come at once
};

/// Of a device beside the CPU.
struct DeviceMemoryReport {
  std::string name;  // "cuda:0"
  std::vector<MemoryClass> classes;
  int64_t planned_bytes = 0;  // of all classes
  int64_t peak_bytes = 0;     // of all tensors, as its allocator counts them
  int64_t machine_bytes = 0;  // what it has; 0: not known
};

/// Where the memory of a run went. A plain value.
struct MemoryReport {
  std::vector<MemoryClass> classes;
  int64_t planned_bytes = 0;  // of all classes, the program as it was measured
  int64_t peak_bytes = 0;     // resident, of the process
  int64_t machine_bytes = 0;  // what there is; 0: not known
  std::vector<DeviceMemoryReport> devices;
};

/// What was measured of tensors in one place. Each is the most so far.
struct PlacePeaks {
  int64_t tensors = 0;    // all of LibTorch's; 0: nobody counts them
  int64_t pool_held = 0;  // of the rollout's KV pool, a tensor
  int64_t pool_used = 0;
  ModelBytes models;  // of all together
};

/// What was measured. Likewise.
struct MemoryPeaks {
  int64_t program = 0;  // resident before models and nodes were made
  int64_t resident = 0;
  int64_t columns = 0;
  PlacePeaks host;
  std::map<std::string, PlacePeaks> devices;  // by name
};

/// Activations are the tensors that are none of the others; "other" is what is resident beyond all classes.
MemoryReport memory_report(const PlanMemory& planned, const MemoryPeaks& peaks, const std::vector<PlanDevice>& devices = {});

/// One line a class and one for the total, without newlines: `KV cache      planned   5.8 MB   peak   4.1 MB`.
std::vector<std::string> memory_lines(const MemoryReport& report);

/// One JSON object: `classes`, `planned_bytes`, `peak_bytes`, `machine_bytes`. Of several ranks that is of rank 0, and `ranks`
/// has a row a rank: `rank`, `peak_bytes` and `classes`, what each had at most by its name. `others`: the other ranks, by rank.
std::string memory_json(const MemoryReport& report, const std::map<int, MemoryReport>& others = {});

/// For the mail. memory_report_from() throws InternalError on what bytes_of() does not write.
std::string bytes_of(const MemoryReport& report);
MemoryReport memory_report_from(std::string_view bytes);

/// What to lower, by the class that is the largest of those that a key can change.
std::string memory_advice(const Plan& plan, const MemoryReport& report);

}  // namespace sluice::engine
