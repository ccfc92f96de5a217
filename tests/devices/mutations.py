"""Takes a copy, a wait, a device or what else the code of devices needs out of it, one at a time, and sees that a test fails.

    python3 tests/devices/mutations.py [WORDS OF A NAME]

Needs a build in build/release of the program and sluice_devices_test, and changes nothing of it: what is spoilt is compiled
beside it, half a minute each, and loaded first. No part of the tests that always run."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import mutating  # noqa: E402

BUILD = ROOT / "build/release"
TESTS = BUILD / "tests/sluice_devices_test"
PORTABLE = "models/portable/"

# Name; file; what is there; what takes its place; the test of tests/pipelines/fake_device_test.py that looks, or none:
# sluice_devices_test.
MUTATIONS = [
    ("a copy: numbers of a step stay on the host", PORTABLE + "abilities.cpp", "return host.to(device, /*non_blocking=*/true);",
     "return host;", None),
    ("a copy: positions of a pass stay on the host", PORTABLE + "hidden_states.cpp",
     "places.positions = copied_to(device, places.positions);", "", None),
    ("a wait: pinned memory is filled again while it is copied", PORTABLE + "abilities.cpp", "const at::Tensor host = "
     "empty_for(device, {static_cast<int64_t>(numbers.size())}, type);", "static const at::Tensor all = empty_for(device, {1 << "
     "16}, at::kLong);\n  const at::Tensor host = all.view(type).narrow(0, 0, static_cast<int64_t>(numbers.size()));", None),
    ("a wait: tokens are read before they have come", PORTABLE + "sampler.cpp", "const at::Tensor here = numbers.to(at::kCPU);",
     "const at::Tensor here = numbers.to(at::kCPU, /*non_blocking=*/true);", None),
    ("a wait: log-probabilities are read before they have come", "nodes/models/passes/pass_request.cpp",
     "return entries.to(at::kCPU);", "return entries.to(at::kCPU, /*non_blocking=*/true);", None),
    ("a device: the cache lies on the host", PORTABLE + "decoder.cpp",
     "at::TensorOptions(dtype_of(options.precision)).device(options.device);", "at::TensorOptions(dtype_of(options.precision));",
     None),
    ("a device: the moments lie on the host", "models/train/adamw.cpp", "first_moments_(at::zeros({floats_of(owned_)}, "
     "flat_.weight_buffer().options()))", "first_moments_(at::zeros({floats_of(owned_)}))", None),
    ("a device: adapters begin on the host", "models/adapters/lora.cpp", "const at::Device device = matrix.weight->device();",
     "const at::Device device = at::kCPU;", None),
    ("a device: what is saved is merged where it lies", "models/folder/safetensors_writer.cpp", "whole.narrow(dim, "
     "first, count).to(at::kCPU);", "whole.narrow(dim, first, count);", "test_adapters_give_the_numbers_of_the_cpu"),
    ("memory: what no token wrote is not cleared", PORTABLE + "decoder.cpp", "return at::zeros({config.layers",
     "return at::empty({config.layers", None),
    ("memory: the published version is the live weights", "models/sample/packed_weights.cpp",
     "for (auto& [name, tensor] : own) tensor = tensor.clone();", "", None),
    ("publishing: a tied head is one more tensor", PORTABLE + "layer_maths.cpp",
     "if (weights.head.is_same(weights.embedding)) copy.head = copy.embedding;", "", None),
    ("publishing: adapters are left out", PORTABLE + "layer_maths.cpp",
     "if (which(adapter.a, of_copies[j]->weight)) of_copies[j]->weight.copy_(merged(*linears[j]));", "", None),
    ("publishing: norms stay as they were", "models/sample/packed_weights.cpp",
     "portable::copy_trained_operands(weights, on_device_, written_);", "(void)weights;", None),
    ("publishing: a step writes none of the matrices", "models/train/adamw.cpp", "written_ = matrices;", "(void)matrices;", None),
    ("publishing: what somebody else changed is not copied", "nodes/models/sampling/sampled_weights.cpp",
     ", copy.only_trained_differs = false;", ";", None),
    ("publishing: nothing is written anew", "models/sample/packed_weights.cpp", "portable::copy_operands(weights, on_device_);",
     "(void)weights;", None),
    ("training: gradients stay for the next step", "models/train/adamw.cpp", "if (!own) clear_gradients();", "", None),
    ("sampling: a block that two samples share is not copied", PORTABLE + "decoder.cpp",
     "for (const at::Tensor& cache : {keys_, values_}) cache.select(1, to).copy_(cache.select(1, from));",
     "(void)from, (void)to;", "test_every_pipeline_gives_the_numbers_of_the_cpu"),
    ("sampling: a shared block is copied without its tokens", PORTABLE + "decoder.cpp",
     "if (ids_.defined()) ids_[to].copy_(ids_[from]);", "", None),
    ("sampling: the tokens of a step are not kept for penalties", PORTABLE + "decoder.cpp",
     "if (ids_.defined())\n    ids_.flatten()", "if (false)\n    ids_.flatten()", None),
    ("saving: the copy is not made", "models/memory/host_copy.cpp",
     "memory.narrow(0, 0, part.numel()).copy_(part, /*non_blocking=*/true);", "", None),
    ("a wait: what is saved is taken before it has come", "models/memory/host_copy.cpp", "half.come.synchronize();", "", None),
    ("a wait: streams begin before what was asked for is done", "models/devices/streams.cpp",
     "back_end.synchronizeDevice(device.index());", "", None),
    ("a wait: others read weights before their step is done", "nodes/models/trained_model.cpp",
     "models::finish_work_on(transformer().device());", "", None),
    ("a wait: a version is read before it is packed", "nodes/models/sampling/sampled_weights.cpp",
     "models::finish_work_on(device_);", "", None),
]


def library_of(file):
    return f"libsluice_{file.split('/')[0]}.so"


def compile_commands():
    done = subprocess.run(["ninja", "-C", BUILD, "-t", "compdb"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def command_of(file, commands):
    """What compiles the file for its library, alone or with others of its folder."""
    of_library = f"CMakeFiles/sluice_{file.split('/')[0]}.dir/"
    for command in commands:
        source = pathlib.Path(command["file"])
        if not command["output"].startswith(of_library):
            continue
        if source == ROOT / file or ("together" in source.parts and f'"{file}"' in source.read_text()):
            return command
    raise SystemExit(f"nothing compiles {file}")


def spoilt_library(file, text, commands, folder):
    """The library of the file, linked anew with `text` instead of it."""
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text)
    command = command_of(file, commands)
    spoilt = folder / "spoilt.o"
    words = [word for word in shlex.split(command["command"]) if word != str(ROOT / file)]
    if str(ROOT / file) == command["file"]:
        words.append(str(folder / file))
    words[words.index("-o") + 1] = str(spoilt)
    words[words.index("-MF") + 1] = str(folder / "spoilt.d")
    words.insert(words.index(f"-I{ROOT}"), f"-I{folder}")
    subprocess.run(words, cwd=BUILD, check=True)
    name = library_of(file)
    target = os.readlink(BUILD / os.readlink(BUILD / name))
    link = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "-s", target], capture_output=True, text=True,
                          check=True).stdout
    library = folder / name
    link = link.replace(f" {command['output']} ", f" {spoilt} ").replace(f"-o {target} ", f"-o {library} ")
    subprocess.run(link, shell=True, cwd=BUILD, check=True)
    return library


def passes(library, test):
    """Whether the test passes with this library instead of the one that was built."""
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    if test is None:
        words, environment["LD_PRELOAD"] = [TESTS], str(library)
    else:
        program = library.parent / "rlhf-run"
        program.write_text(f'#!/bin/sh\nLD_PRELOAD={library} exec {BUILD}/cli/rlhf-run "$@"\n')
        program.chmod(0o755)
        environment |= {"SLUICE_PROGRAM": str(program),
                        "SLUICE_FAKE_DEVICE": str(BUILD / "tests/plugins/libsluice_fake_device.so")}
        words = [sys.executable, ROOT / "tests/pipelines/fake_device_test.py", f"FakeDevicePipelines.{test}"]
    done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600)
    if "LD_PRELOAD cannot be preloaded" in done.stderr:
        raise SystemExit(done.stderr)
    return done.returncode == 0


def is_found(file, text, commands, test):
    with tempfile.TemporaryDirectory() as folder:
        return not passes(spoilt_library(file, text, commands, pathlib.Path(folder)), test)


def main():
    chosen, commands = mutating.chosen(MUTATIONS), compile_commands()
    # With nothing taken out of it the same tests pass.
    for library, test in sorted({(library_of(file), test) for _, file, _, _, test in chosen}, key=str):
        file = next(file for _, file, _, _, _ in chosen if library_of(file) == library)
        if is_found(file, (ROOT / file).read_text(), commands, test):
            raise SystemExit(f"{library} as it is fails {test or 'sluice_devices_test'}")
    return mutating.report((name, is_found(file, mutating.spoilt(name, file, (ROOT / file).read_text(), there, instead), commands,
                                           test)) for name, file, there, instead, test in chosen)


if __name__ == "__main__":
    raise SystemExit(main())
