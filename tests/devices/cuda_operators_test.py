"""Every operator that models on a device ask LibTorch for, forward and backward, has a kernel for CUDA.

Which these are, the device of the tests writes down (tests/fake_device/called_operators.h) while its own tests and all
pipelines run. The dispatcher of the CUDA part of LibTorch is asked whether it has them: that needs no driver and no GPU, and of
the libraries that this part needs only the names, so empty ones stand for those that are not here."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench/gpu"))
from pipelines import few_groups, models_on  # noqa: E402
from place import Device  # noqa: E402

NAMES = ("PROGRAM", "CUDA_OPERATORS", "FAKE_DEVICE", "DEVICE_TESTS", "TORCH")
PROGRAM, ASKER, PLUGIN, TESTS, TORCH = (os.environ[f"SLUICE_{name}"] for name in NAMES)
COMPILER = os.environ.get("SLUICE_COMPILER", "c++")
LIBRARY = pathlib.Path(TORCH) / "lib/libtorch_cuda.so"
# Where LibTorch asks for one operator on CUDA and for others elsewhere, or where the device of the tests has a function of its
# own.
ON_CUDA_ALONE = """
aten::_fused_rms_norm aten::_fused_rms_norm_backward
aten::_fused_sdp_choice aten::native_layer_norm
aten::_scaled_dot_product_flash_attention aten::_scaled_dot_product_flash_attention_backward
aten::_scaled_dot_product_efficient_attention aten::_scaled_dot_product_efficient_attention_backward
aten::_scaled_dot_product_cudnn_attention aten::_scaled_dot_product_cudnn_attention_backward
aten::_flash_attention_forward aten::_flash_attention_backward aten::mm.dtype aten::addmm.dtype_out
aten::empty.memory_format aten::empty_strided aten::resize_ aten::record_stream aten::copy_
aten::as_strided aten::view aten::unfold aten::_reshape_alias
""".split()


def stand_ins(folder):
    """Empty libraries for those that LibTorch's CUDA part needs and this machine lacks."""
    listed = subprocess.run(["ldd", LIBRARY], capture_output=True, text=True, check=True).stdout
    for name in sorted(set(re.findall(r"(\S+) => not found", listed))):
        subprocess.run([COMPILER, "-shared", "-x", "c", "/dev/null", "-o", folder / name, f"-Wl,-soname,{name}"], check=True)


def run_on_device(words, log):
    done = subprocess.run(words, env={**os.environ, "SLUICE_FAKE_OPERATORS": str(log)}, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def called_operators(folder):
    log = folder / "operators"
    run_on_device([TESTS, "--gtest_brief=1"], log)
    for path in sorted((ROOT / "pipelines").glob("*.toml")):
        values = models_on(path, Device("fake:0")) | few_groups(path) | {"pipeline.iterations": 1}
        sets = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
        run_on_device([PROGRAM, "run", path, "--plugin", PLUGIN, "--run-dir", folder / path.stem, *sets], log)
    return sorted(set(log.read_text().split()))


@unittest.skipUnless(LIBRARY.exists(), "this LibTorch has no CUDA part")
class CudaOperators(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-operators-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        stand_ins(self.folder)

    def without_kernel(self, names):
        paths = ":".join(filter(None, [str(self.folder), os.environ.get("LD_LIBRARY_PATH")]))
        done = subprocess.run([ASKER, LIBRARY], input="\n".join(names), env={**os.environ, "LD_LIBRARY_PATH": paths},
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def test_all_that_devices_are_asked_for_have_a_kernel(self):
        called = [name for name in called_operators(self.folder) if not name.startswith("sluice::")]
        for name in ("aten::addmm.out", "aten::_softmax_backward_data.out", "aten::embedding_dense_backward",
                     "aten::_fused_adamw_", "aten::topk.values", "aten::searchsorted.Tensor"):
            self.assertIn(name, called)
        self.assertEqual(self.without_kernel(called + ON_CUDA_ALONE), [])

    def test_one_without_a_kernel_is_found(self):
        self.assertEqual(self.without_kernel(["aten::add.Tensor", "aten::mkldnn_linear"]), ["aten::mkldnn_linear"])

    def test_a_name_that_is_none_is_found(self):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.folder)}
        done = subprocess.run([ASKER, LIBRARY], input="aten::no_such\n", capture_output=True, text=True, env=environment)
        self.assertEqual((done.returncode, done.stderr), (1, "aten::no_such is no operator\n"))


if __name__ == "__main__":
    unittest.main()
