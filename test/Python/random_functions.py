"""Random score and mask functions, each as what attn traces and as what NumPy computes."""

import operator

import numpy as np

import attn

# Elements of captured arrays, and the positions that they are read at.
INTEGERS = [("i1", -128, 128), ("i4", -(2**31), 2**31), ("i8", -(2**63), 2**63), ("i4", -3, 4)]
PLACES = ["h", "k", "bq", "hk"]


class Term:
    """An expression: `traced` of symbols, `computed` of arrays."""

    def __init__(self, traced, computed):
        self.traced, self.computed = traced, computed


def apply(traced, computed, *terms):
    return Term(
        lambda at: traced(*[term.traced(at) for term in terms]),
        lambda at: computed(*[np.asarray(term.computed(at)) for term in terms]),
    )


def divide(function):
    """A divisor of 0 is 1; the least integer by -1 is what the next one is."""

    def computed(x, y):
        return function(np.maximum(x, -(2**63) + 1) if (y < 0).any() else x, np.where(y == 0, 1, y))

    return computed


class Generator:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.extents = dict(
            zip("bhqk", self.choose([(1, 2, 9, 16), (2, 3, 17, 24), (2, 2, 5, 70)]))
        )
        self.captured = {}

    def choose(self, values):
        return values[self.random.integers(len(values))]

    def branch(self, **weights):
        total = sum(weights.values())
        return self.random.choice(list(weights), p=[weight / total for weight in weights.values()])

    def capture(self, make):
        """An element of an array of its own."""
        place, name = self.choose(PLACES), f"array{len(self.captured)}"
        array = make([self.extents[letter] for letter in place])
        self.captured[name] = attn.tensor(array)
        computed = array.astype({"i": np.int64, "f": np.float32, "b": bool}[array.dtype.kind])
        return Term(
            lambda at: self.captured[name][tuple(at[letter] for letter in place)],
            lambda at: computed[tuple(at[letter] for letter in place)],
        )

    def integer(self, depth):
        make = getattr(self, "integer_" + self.branch(**(INNER if depth > 0 else LEAVES)))
        return make(depth - 1)

    def integer_position(self, depth):
        letter = self.choose("bhqk")
        return Term(lambda at: at[letter], lambda at: at[letter])

    def integer_constant(self, depth):
        value = self.choose(
            [-(1 << 20), -128, -8, -7, -3, -2, -1, 1, 2, 3, 7, 16, 31, 127, 128, 1000]
        )
        return Term(lambda at: value, lambda at: np.int64(value))

    def integer_captured(self, depth):
        type_, low, high = self.choose(INTEGERS)
        return self.capture(lambda shape: self.random.integers(low, high, shape).astype(type_))

    def integer_of_bool(self, depth):
        return apply(lambda x: x + 0, lambda x: x.astype(np.int64), self.truth(depth))

    def integer_chosen(self, depth):
        return apply(
            attn.where, np.where, self.truth(depth), self.integer(depth), self.integer(depth)
        )

    def integer_unary(self, depth):
        function = self.choose([operator.neg, operator.invert, lambda x: x >> 3])
        return apply(function, function, self.integer(depth))

    def integer_size(self, depth):
        # The size of the least integer is none.
        return apply(lambda x: abs(x >> 1), lambda x: np.abs(x >> 1), self.integer(depth))

    def integer_binary(self, depth):
        function = self.choose(
            [operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor]
        )
        return apply(function, function, self.integer(depth), self.integer(depth))

    def integer_extreme(self, depth):
        traced, computed = self.choose([(attn.minimum, np.minimum), (attn.maximum, np.maximum)])
        return apply(traced, computed, self.integer(depth), self.integer(depth))

    def integer_quotient(self, depth):
        traced, computed = self.choose(
            [(operator.floordiv, np.floor_divide), (operator.mod, np.remainder)]
        )
        return apply(traced, divide(computed), self.integer(depth), self.integer(depth))

    def truth(self, depth):
        kind = self.branch(comparison=5, captured=1, inverted=1, joined=3 if depth > 0 else 0)
        if kind == "captured":
            return self.capture(lambda shape: self.random.random(shape) < 0.5)
        if kind == "comparison":
            compare = getattr(operator, self.choose(["lt", "le", "gt", "ge", "eq", "ne"]))
            if self.random.random() < 0.75:
                return apply(compare, compare, self.integer(depth - 1), self.integer(depth - 1))
            return apply(compare, compare, self.number(depth - 1), self.number(depth - 1))
        if kind == "inverted":
            return apply(lambda x: x ^ True, np.logical_not, self.truth(depth - 1))
        function = self.choose([operator.and_, operator.or_, operator.xor])
        return apply(function, function, self.truth(depth - 1), self.truth(depth - 1))

    def number(self, depth):
        """A float that is exact: quarters, and halves of them."""
        kind = self.branch(
            position=2, captured=2, **({"binary": 4, "floor": 1, "chosen": 1} if depth > 0 else {})
        )
        if kind == "position":
            clip = apply(
                lambda x: attn.clip(x, -512, 511) * 0.5,
                lambda x: np.clip(x, -512, 511).astype(np.float32) * np.float32(0.5),
                self.integer_position(depth),
            )
            return clip
        if kind == "captured":
            type_ = self.choose(["f4", "f2"])
            return self.capture(
                lambda shape: (self.random.integers(-64, 64, shape) / 4).astype(type_)
            )
        if kind == "floor":
            return apply(attn.floor, np.floor, self.number(depth - 1))
        if kind == "chosen":
            return apply(
                attn.where,
                np.where,
                self.truth(depth - 1),
                self.number(depth - 1),
                self.number(depth - 1),
            )
        traced, computed = self.choose(
            [
                (operator.add, operator.add),
                (operator.sub, operator.sub),
                (attn.minimum, np.minimum),
                (attn.maximum, np.maximum),
            ]
        )
        return apply(traced, computed, self.number(depth - 1), self.number(depth - 1))


LEAVES = dict(position=6, constant=2, captured=2)
INNER = dict(
    position=1,
    constant=1,
    captured=1,
    of_bool=1,
    chosen=1,
    unary=2,
    size=1,
    binary=5,
    extreme=2,
    quotient=5,
)


class Problem:
    """A score of several terms and a mask, which see nothing of the queries and keys."""

    def __init__(self, seed):
        make = Generator(seed)
        self.extents = tuple(make.extents.values())
        self.integers = [(make.integer(4), int(make.choose([2, 3, 5, 7]))) for _ in range(6)]
        self.numbers = [make.number(3) for _ in range(2)]
        self.keep = make.truth(4)

    def score(self, s, b, h, q, kv):
        at = dict(b=b, h=h, q=q, k=kv)
        for i, (term, modulus) in enumerate(self.integers):
            s = s + term.traced(at) % modulus * (0.125 * (i + 1))
        for term in self.numbers:
            s = s + term.traced(at) * (1 / 128)
        return s

    def mask(self, b, h, q, kv):
        return (b >= 0) & self.keep.traced(dict(b=b, h=h, q=q, k=kv))

    def probabilities(self):
        """(B, H, M, N), rows of no key zero."""
        places = np.meshgrid(*[np.arange(extent) for extent in self.extents], indexing="ij")
        at = dict(zip("bhqk", places))
        scores = np.zeros(self.extents)
        with np.errstate(over="ignore"):
            for i, (term, modulus) in enumerate(self.integers):
                scores += np.remainder(term.computed(at), modulus) * (0.125 * (i + 1))
            for term in self.numbers:
                scores += term.computed(at) / 128
            keep = np.broadcast_to(self.keep.computed(at), self.extents)
        weights = np.where(keep, np.exp(scores - scores.max()), 0)
        total = weights.sum(-1, keepdims=True)
        return weights / np.where(total == 0, 1, total)

    def run(self):
        """The same by attn: queries and keys are zeros, values are the identity."""
        b, h, m, n = self.extents
        q, k = np.zeros((b, h, m, 8), np.float32), np.zeros((b, h, n, 8), np.float32)
        v = np.broadcast_to(np.eye(n, dtype=np.float32), (b, h, n, n)).copy()
        return attn.attention(q, k, v, score=self.score, mask=self.mask)
