"""Random merges of partial results: texts of `attn.merge`, and s7 of dialects/Attn/README.md in NumPy."""

import numpy as np
import program as fuzz


class Merge:
    """A function that joins partial results, which its caller has. Used as a fuzz.Program is."""

    # Tools know the extents of attentions by letter.
    has_letters = False
    refused = None

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng([seed, 2])
        pick = lambda choices: choices[rng.integers(len(choices))]
        self.kind = pick(["f32", "f16", "bf16"])
        self.part_kind = pick(["f32", self.kind])
        self.dv = int(pick([1, 3, 8, 16, 33, 64]))
        letters = "SBHM"[:rng.integers(2, 5)]
        self.fixed = {letter: int(pick([1, 2, 3, 5])) for letter in letters if rng.random() < 0.3}
        extents = [(letter, str(self.fixed.get(letter, "?"))) for letter in letters]
        self.letters, every = letters, "x".join(extent for _, extent in extents)
        rest = "x".join(extent for _, extent in extents[1:])
        self.types = {"p": f"tensor<{every}x{self.dv}x{self.part_kind}>", "l": f"tensor<{every}xf32>",
                      "o": f"tensor<{rest}x{self.dv}x{self.kind}>", "o_lse": f"tensor<{rest}xf32>"}
        self.results = [("o", self.kind)] + ([("o_lse", "f32")] if rng.random() < 0.5 else [])
        dims = [self.fixed.get(letter, letter) for letter in letters]
        self.captures = [fuzz.Capture("p", self.part_kind, dims + [self.dv], None), fuzz.Capture("l", "f32", dims, None)]
        self.options = {}

    def text(self):
        """Space for the results is made from the extents of the parts."""
        lines, dynamic = [], []
        for i, letter in enumerate(self.letters[1:], 1):
            if letter not in self.fixed:
                lines += [f"%c{i} = arith.constant {i} : index", f"%d{i} = tensor.dim %p, %c{i} : {self.types['p']}"]
                dynamic.append(f"%d{i}")
        names = [name for name, _ in self.results]
        types = [self.types[name] for name in names]
        lines += [f"%e_{name} = tensor.empty({', '.join(dynamic)}) : {type_}" for name, type_ in zip(names, types)]
        outs, results = ", ".join(f"%e_{name}" for name in names), ", ".join(f"%{name}" for name in names)
        lines += [f"{results} = attn.merge %p, %l outs({outs}) : {self.types['p']}, {self.types['l']}, {', '.join(types)} -> "
                  f"{', '.join(types)}", f"return {results} : {', '.join(types)}"]
        body = "".join(f"  {line}\n" for line in lines)
        return f"func.func @f(%p: {self.types['p']}, %l: {self.types['l']}) -> ({', '.join(types)}) {{\n{body}}}\n"

    def extents(self, rng, largest=140):
        choices = {"S": [1, 2, 3, 8], "B": [1, 2, 3], "H": [1, 2, 4], "M": [1, 2, 17, 64, 65, largest]}
        return {x: self.fixed.get(x, int(choices[x][rng.integers(len(choices[x]))])) for x in self.letters}

    def inputs(self, rng, extents):
        """Some parts have kept nothing; what is in them then is not read."""
        shape = [extents[letter] for letter in self.letters]
        parts = fuzz.rounded(rng.normal(size=shape + [self.dv]), self.part_kind)
        logarithms = np.float32(rng.normal(size=shape) * rng.choice([1, 20]))
        empty = rng.random(shape) < rng.choice([0, 0.3, 1], p=[0.4, 0.5, 0.1])
        logarithms[empty] = -np.inf
        parts[empty] = np.nan
        return {**extents, "p": parts, "l": logarithms}

    def arguments(self):
        return [("p", self.part_kind), ("l", "f32")]

    def evaluate(self, env, given=()):
        """The results in f64."""
        del given
        logarithms = np.asarray(env["l"], np.float64)
        parts = np.where(np.isinf(logarithms)[..., None], 0, np.asarray(env["p"], np.float64))
        top = logarithms.max(axis=0)
        weights = np.exp(logarithms - np.where(np.isinf(top), 0, top))
        total = weights.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            output = np.where(total[..., None] > 0, (weights[..., None] * parts).sum(axis=0) / total[..., None], 0)
            lse = top + np.log(total)
        return [output, np.where(np.isneginf(top), -np.inf, lse)][:len(self.results)]
