# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A decode loop, token by token, in many small kernels (python_common.py).

python_decode.py eager    each kernel launched by Python
python_decode.py graph    a CUDA graph of them replayed
"""
import sys

import torch

from python_common import run

WIDTH, HEADS, LENGTH, VOCABULARY, LAYERS = 512, 8, 256, 8192, 4


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)
        cache = torch.zeros(1, HEADS, LENGTH, WIDTH // HEADS)
        self.register_buffer("keys", cache.clone())
        self.register_buffer("values", cache.clone())

    def remember(self, at, key, value):
        self.keys.index_copy_(2, at, key)  # GPU eager
        self.values.index_copy_(2, at, value)  # GPU eager

    def forward(self, h, at):
        qkv = self.qkv(h).view(3, 1, HEADS, 1, WIDTH // HEADS)  # GPU eager
        query, key, value = qkv.unbind(0)
        self.remember(at, key, value)  # GPU eager
        a = torch.nn.functional.scaled_dot_product_attention(query, self.keys, self.values)  # GPU eager
        return h + self.out(a.reshape(1, WIDTH))  # GPU eager


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.register_buffer("at", torch.zeros(1, dtype=torch.long))
        self.register_buffer("token", torch.zeros(1, dtype=torch.long))

    def advance(self, logits):
        self.token.copy_(logits.argmax(dim=-1))  # GPU eager
        self.at.add_(1).remainder_(LENGTH)  # GPU eager

    def forward(self):
        h = self.table(self.token)  # GPU eager
        for layer in self.layers:
            h = layer(h, self.at)  # GPU eager
        logits = torch.mm(h, self.table.weight.t())  # GPU eager
        self.advance(logits)  # GPU eager


def captured(decoder):
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        decoder()  # GPU set-up
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):  # GPU set-up
        decoder()  # GPU set-up
    return graph


def eager_steps(decoder):
    def step():
        decoder()  # GPU eager
        return decoder.token.item()
    return step


def graph_steps(decoder):
    graph = captured(decoder)  # GPU set-up

    def step():
        graph.replay()  # GPU graph
        return decoder.token.item()
    return step


def main():
    torch.manual_seed(7)
    decoder = Decoder().eval().to("cuda")  # GPU set-up
    with torch.no_grad():
        steps = {"eager": eager_steps, "graph": graph_steps}[sys.argv[1]](decoder)  # GPU set-up
        run(steps)  # GPU


if __name__ == "__main__":
    main()  # GPU
