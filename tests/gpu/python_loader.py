# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Inference on what a DataLoader's two worker processes bring (python_common.py)."""
import functools

import torch
import torch.utils.data

from python_common import run

WIDTH, ROWS = 512, 64


class Samples(torch.utils.data.IterableDataset):
    def __iter__(self):
        generator = torch.Generator().manual_seed(7)
        while True:
            yield torch.rand(ROWS, WIDTH, generator=generator)


def predict(model, x):
    h = model(x)  # GPU
    return h.argmax(dim=-1)  # GPU


def consume(model, batches):
    x = next(batches)
    x = x.to("cuda", non_blocking=True)
    return predict(model, x)  # GPU


def main():
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(),
                                torch.nn.Linear(4 * WIDTH, WIDTH)).eval().to("cuda")  # GPU set-up
    x = torch.zeros(1, device="cuda")  # GPU set-up
    del x
    # The workers are forked from a process that uses the device, as they are in most trainings.
    batches = iter(torch.utils.data.DataLoader(Samples(), batch_size=None, num_workers=2))
    with torch.inference_mode():
        run(functools.partial(consume, model, batches))  # GPU


if __name__ == "__main__":
    main()  # GPU
