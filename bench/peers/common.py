"""What the peers share: the folder's model and tokenizer, and the lines on which they are asked and answer
(bench/harness/workers.py).

A peer that is trained by a loop that is not ours asks for its next question from inside that loop."""

import argparse
import json
import os
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
answers = os.fdopen(os.dup(1), "w")  # libraries print to the standard output: from here on that is the standard error
os.dup2(2, 1)

import torch  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast  # noqa: E402

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def options(description, **counts):
    """--model, --dtype, --threads, --device, and one number for each of `counts`, which has the defaults. Sets the threads."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a folder of bench/harness/shapes.py")
    parser.add_argument("--dtype", choices=list(DTYPES), default="float32")
    parser.add_argument("--device", default="cpu")
    for name, value in dict(threads=2, **counts).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(0)
    return chosen


def config(folder, **overrides):
    return AutoConfig.from_pretrained(folder, **overrides)


def language_model(folder, dtype, device="cpu"):
    with torch.device(device):  # random numbers are drawn there, too
        return AutoModelForCausalLM.from_config(config(folder), dtype=DTYPES[dtype])


def now(device):
    """When a device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def tokenizer(folder, **overrides):
    return PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json", pad_token="<pad>", eos_token="<eos>", **overrides)


def question():
    """The next one; ends the process when nobody asks any more."""
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    return json.loads(line)


def answer(**figures):
    print(json.dumps(figures), file=answers, flush=True)


class Iterations:
    """The clock of a training loop: begin() before the first iteration, ended() behind each."""

    def begin(self):
        question()
        self.start = time.perf_counter()

    def ended(self):
        answer(seconds=time.perf_counter() - self.start)
        self.begin()
