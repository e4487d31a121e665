# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A small server of PyTorch: tasks of asyncio, asynchronous generators, threads, random lengths.
usage: torch_serve.py ROUNDS"""
import asyncio
import random
import sys

import torch

import launching
from torch_train import Net, launches


def pick(logits, temperature):
    if temperature < 0.1:
        return logits.argmax(-1)
    p = (logits / temperature).softmax(-1)
    if random.random() < 0.3:
        v, _ = p.topk(random.randint(2, 9))
        p = p * (p >= v[..., -1:])
    return torch.multinomial(p / p.sum(-1, keepdim=True), 1)


async def generate(net, length, temperature):
    x = torch.randint(0, 50, (1, random.randint(1, 6)))
    for _ in range(length):
        with torch.no_grad():
            logits = net(x)[:, -1]
        x = torch.cat([x, pick(logits, temperature).view(1, 1)], 1)
        if random.random() < 0.4:
            await asyncio.sleep(0)
        yield x.shape[1]


async def request(net):
    total = 0
    async for n in generate(net, random.randint(2, 6), random.choice([0.0, 0.7, 1.0])):
        total += n * float(torch.ones(3).mul(2).sum())
    return total


def in_a_thread(net):
    with torch.no_grad():
        return [float(net(torch.tensor([[n]])).sum()) for n in range(2)]


async def serve(net, rounds):
    loop = asyncio.get_running_loop()
    for _ in range(rounds):
        jobs = [request(net) for _ in range(random.randint(1, 4))]
        jobs += [loop.run_in_executor(None, in_a_thread, net) for _ in range(2)]
        await asyncio.gather(*jobs)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    random.seed(1)
    launching.start()
    launching.gate()
    net = Net(2, 16).eval()
    with launches():
        asyncio.run(serve(net, int(sys.argv[1])))
    print("done", flush=True)


main()
