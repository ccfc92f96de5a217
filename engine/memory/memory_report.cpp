#include "engine/memory/memory_report.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/json/json.h"
#include "base/numbers/bytes.h"
#include "base/text/strings.h"

namespace sluice::engine {
namespace {

constexpr const char* kProgram = "program";
constexpr const char* kWeights = "weights";
constexpr const char* kGradients = "gradients";
constexpr const char* kOptimizer = "optimizer";
constexpr const char* kCopy = "checkpoint copy";
constexpr const char* kPool = "KV cache";
constexpr const char* kColumns = "columns";
constexpr const char* kActivations = "activations";
constexpr const char* kOther = "other";

// What the program takes as it works beside what it takes at its start, which was measured: stacks of threads, arenas of malloc,
// libraries that are loaded late. The same at all sizes, as seen with models of 0.3 to 160 million parameters.
constexpr int64_t kProgramAtWork = 40'000'000;

std::string line_of(const std::string& name, size_t width, const std::string& planned, int64_t peak) {
  constexpr size_t kBytes = 8;
  return padded(name, width) + "planned " + padded_before(planned, kBytes) + "   peak " +
         padded_before(human_bytes(peak), kBytes);
}

Json row_of_rank(int rank, const MemoryReport& report) {
  Json classes = Json::object();
  for (const MemoryClass& of : report.classes) classes[of.name] = of.peak_bytes;
  return {{"rank", rank}, {"peak_bytes", report.peak_bytes}, {"classes", std::move(classes)}};
}

// Tensors that are none of the others.
int64_t activations_of(const PlacePeaks& place) {
  const ModelBytes& models = place.models;
  return std::max<int64_t>(0, place.tensors - models.weights - models.gradients - models.optimizer - place.pool_held);
}

DeviceMemoryReport device_report(const PlanDevice& device, const PlacePeaks& peaks) {
  const PlanMemory& planned = device.memory;
  DeviceMemoryReport report{.name = device.name,
                            .classes = {{kWeights, planned.weights_bytes, peaks.models.weights},
                                        {kGradients, planned.gradient_bytes, peaks.models.gradients},
                                        {kOptimizer, planned.optimizer_bytes, peaks.models.optimizer},
                                        {kPool, planned.kv_bytes, peaks.pool_used},
                                        {kActivations, planned.activation_bytes, activations_of(peaks)}},
                            .planned_bytes = planned.total_bytes(),
                            .peak_bytes = peaks.tensors,
                            .machine_bytes = planned.machine_bytes};
  std::erase_if(report.classes, [](const MemoryClass& of) { return of.planned_bytes == 0 && of.peak_bytes == 0; });
  return report;
}

Json json_of(const std::vector<MemoryClass>& classes) {
  Json array = Json::array();
  for (const MemoryClass& of : classes)
    array.push_back({{"name", of.name}, {"planned_bytes", of.planned_bytes}, {"peak_bytes", of.peak_bytes}});
  return array;
}

Json devices_of(const MemoryReport& report) {
  Json devices = Json::array();
  for (const DeviceMemoryReport& device : report.devices)
    devices.push_back({{"name", device.name},
                       {"classes", json_of(device.classes)},
                       {"planned_bytes", device.planned_bytes},
                       {"peak_bytes", device.peak_bytes},
                       {"machine_bytes", device.machine_bytes}});
  return devices;
}

std::string total_line(const std::string& name, size_t width, int64_t planned, int64_t peak, int64_t machine) {
  return line_of(name, width, human_bytes(planned), peak) + (machine > 0 ? " of " + human_bytes(machine) : std::string());
}

void write_classes(ByteWriter& bytes, const std::vector<MemoryClass>& classes) {
  bytes.number(uint64_t{classes.size()});
  for (const MemoryClass& of : classes) {
    bytes.text(of.name);
    bytes.number(of.planned_bytes);
    bytes.number(of.peak_bytes);
  }
}

std::vector<MemoryClass> read_classes(ByteReader& bytes) {
  std::vector<MemoryClass> classes;
  for (auto left = bytes.number<uint64_t>(); left > 0; --left) {
    MemoryClass& of = classes.emplace_back(MemoryClass{.name = std::string(bytes.text())});
    of.planned_bytes = bytes.whole_number();
    of.peak_bytes = bytes.whole_number();
  }
  return classes;
}

std::string model_advice(const Plan& plan) {
  return std::string("smaller models, or dtype = \"bfloat16\"") + (plan.schedule.policy_lag > 0 ? "; a smaller policy_lag" : "");
}

}  // namespace

MemoryReport memory_report(const PlanMemory& planned, const MemoryPeaks& peaks, const std::vector<PlanDevice>& devices) {
  const PlacePeaks& host = peaks.host;
  int64_t copies = host.models.copies;  // are on the host, wherever the model is
  for (const auto& [name, device] : peaks.devices) copies += device.models.copies;
  MemoryReport report;
  report.classes = {{kProgram, 0, peaks.program},
                    {kWeights, planned.weights_bytes, host.models.weights},
                    {kGradients, planned.gradient_bytes, host.models.gradients},
                    {kOptimizer, planned.optimizer_bytes, host.models.optimizer},
                    {kCopy, planned.copy_bytes, copies},
                    {kPool, planned.kv_bytes, host.pool_used},
                    {kColumns, planned.column_bytes, peaks.columns},
                    {kActivations, planned.activation_bytes, activations_of(host)}};
  int64_t known = 0;
  for (const MemoryClass& of : report.classes) known += of.peak_bytes;
  const int64_t other = planned.slack_bytes + kProgramAtWork;
  report.classes.push_back({kOther, other, std::max<int64_t>(0, peaks.resident - known)});
  std::erase_if(report.classes, [](const MemoryClass& of) { return of.planned_bytes == 0 && of.peak_bytes == 0; });
  report.planned_bytes = peaks.program + kProgramAtWork + planned.total_bytes();
  report.peak_bytes = peaks.resident;
  report.machine_bytes = planned.machine_bytes;
  for (const PlanDevice& device : devices) {
    const auto measured = peaks.devices.find(device.name);
    report.devices.push_back(device_report(device, measured == peaks.devices.end() ? PlacePeaks() : measured->second));
  }
  return report;
}

std::vector<std::string> memory_lines(const MemoryReport& report) {
  size_t width = 12;
  for (const MemoryClass& of : report.classes) width = std::max(width, of.name.size() + 1);
  for (const DeviceMemoryReport& device : report.devices)
    for (const MemoryClass& of : device.classes) width = std::max(width, device.name.size() + of.name.size() + 2);
  std::vector<std::string> lines;
  for (const MemoryClass& of : report.classes)
    lines.push_back(line_of(of.name, width, of.name == kProgram ? "-" : human_bytes(of.planned_bytes), of.peak_bytes));
  lines.push_back(total_line("resident", width, report.planned_bytes, report.peak_bytes, report.machine_bytes));
  for (const DeviceMemoryReport& device : report.devices) {
    for (const MemoryClass& of : device.classes)
      lines.push_back(line_of(device.name + " " + of.name, width, human_bytes(of.planned_bytes), of.peak_bytes));
    lines.push_back(total_line(device.name, width, device.planned_bytes, device.peak_bytes, device.machine_bytes));
  }
  return lines;
}

std::string memory_json(const MemoryReport& report, const std::map<int, MemoryReport>& others) {
  Json json;
  json["classes"] = json_of(report.classes);
  json["planned_bytes"] = report.planned_bytes;
  json["peak_bytes"] = report.peak_bytes;
  json["machine_bytes"] = report.machine_bytes;
  if (!report.devices.empty()) json["devices"] = devices_of(report);
  if (others.empty()) return json.dump(2) + "\n";
  json["ranks"] = Json::array({row_of_rank(0, report)});
  for (const auto& [rank, other] : others) json["ranks"].push_back(row_of_rank(rank, other));
  return json.dump(2) + "\n";
}

std::string bytes_of(const MemoryReport& report) {
  ByteWriter bytes;
  write_classes(bytes, report.classes);
  for (const int64_t number : {report.planned_bytes, report.peak_bytes, report.machine_bytes}) bytes.number(number);
  bytes.number(uint64_t{report.devices.size()});
  for (const DeviceMemoryReport& device : report.devices) {
    bytes.text(device.name);
    write_classes(bytes, device.classes);
    for (const int64_t number : {device.planned_bytes, device.peak_bytes, device.machine_bytes}) bytes.number(number);
  }
  return bytes.take();
}

MemoryReport memory_report_from(std::string_view text) {
  ByteReader bytes(text);
  MemoryReport report;
  report.classes = read_classes(bytes);
  for (int64_t* number : {&report.planned_bytes, &report.peak_bytes, &report.machine_bytes}) *number = bytes.whole_number();
  for (auto left = bytes.number<uint64_t>(); left > 0; --left) {
    DeviceMemoryReport& device = report.devices.emplace_back(DeviceMemoryReport{.name = std::string(bytes.text())});
    device.classes = read_classes(bytes);
    for (int64_t* number : {&device.planned_bytes, &device.peak_bytes, &device.machine_bytes}) *number = bytes.whole_number();
  }
  bytes.expect_end();
  return report;
}

std::string memory_advice(const Plan& plan, const MemoryReport& report) {
  std::string_view largest;
  int64_t most = 0;
  for (const MemoryClass& of : report.classes) {
    const int64_t bytes = std::max(of.planned_bytes, of.peak_bytes);
    if (of.name == kProgram || of.name == kOther || bytes <= most) continue;
    most = bytes;
    largest = of.name;
  }
  if (largest == kPool || largest == kColumns) {
    const bool shorter = largest == kPool && plan.budget.admission == Admission::kWorstCase;
    return "a smaller tokens_in_flight in [budget] takes less " + std::string(largest) +
           (shorter ? ", and so do a smaller max_new_tokens and max_running_samples" : "");
  }
  if (largest == kActivations) return "a smaller pass_tokens in [budget] takes less activations";
  if (largest == kCopy && plan.checkpoint_copy == CheckpointCopy::kMemory) return "copy = \"none\" in [checkpoint] takes less";
  return model_advice(plan);
}

}  // namespace sluice::engine
