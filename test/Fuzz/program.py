"""Random attentions: each is a text of the `attn` dialect and, built beside it, its meaning in NumPy.

The meaning is computed from the contract (s1 to s13 of dialects/Attn/README.md) and shares nothing with the compiler.
Every value of a region is a pair: the name in the text, and a function from an environment (positions, extents, captured
arrays) to an array that broadcasts over (B, H, M, N).
"""

import numpy as np

INTEGERS = {"i8": np.int8, "i32": np.int32, "i64": np.int64, "index": np.int64}
# What regions may compute with and callers cannot pass.
REFUSED = "i16"
FLOATS = {"f32": np.float32, "f16": np.float16, "bf16": None}


def to_bf16(x):
    """Rounds f32 to the nearest bf16, ties to even, and returns f32."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def rounded(x, kind):
    """The values that an array of this type can hold, as f32."""
    x = np.asarray(x, dtype=np.float32)
    if kind == "bf16":
        return to_bf16(x)
    return x.astype(np.float16).astype(np.float32) if kind == "f16" else x


class Capture:
    """A tensor or scalar that regions read: its extents by letter, and how to draw it. One that a variant reads has exactly
    the problem's extents."""

    def __init__(self, name, kind, dims, draw):
        self.name, self.kind, self.dims, self.draw = name, kind, dims, draw
        self.is_exact = False

    @property
    def type(self):
        extents = "".join("?x" if isinstance(d, str) else f"{d}x" for d in self.dims)
        return f"tensor<{extents}{self.kind}>"


class Region:
    """The lines of one region, and expressions over its values. Positions of a shifted one do not start at 0."""

    def __init__(self, program, rng, arguments, is_shifted):
        self.program, self.rng, self.lines, self.arguments = program, rng, [], arguments
        self.is_shifted = is_shifted

    def line(self, text):
        name = f"%x{self.program.fresh()}"
        self.lines.append(f"{name} = {text}")
        return name

    def pick(self, choices):
        return choices[self.rng.integers(len(choices))]

    def constant(self, value, kind):
        text = f"{value}" if kind in INTEGERS else repr(float(value))
        return self.line(f"arith.constant {text} : {kind}"), lambda env: value

    def position(self):
        letter = self.pick("mmmnnnbh")
        return f"%{self.arguments[letter]}", lambda env: env[letter]

    def captured(self, dims, kind, draw):
        """An element of a new or known captured tensor, at the positions that its extents are named after."""
        known = [c for c in self.program.captures if c.dims == dims and c.kind == kind and c.draw == draw
                 and not (c.is_exact and self.is_shifted)]
        capture = known[0] if known and self.rng.random() < 0.5 else self.program.capture(kind, dims, draw)
        letters = [d.lower() for d in dims]
        indices = ", ".join(f"%{self.arguments[letter]}" for letter in letters)
        name = self.line(f"tensor.extract %{capture.name}[{indices}] : {capture.type}")

        def meaning(env):
            return env[capture.name][tuple(env[letter] for letter in letters)]

        return name, meaning

    def index(self, depth):
        """An `index` whose size stays far below 2^29."""
        choice = self.rng.integers(10) if depth > 0 else self.rng.integers(3)
        if choice < 2:
            return self.position()
        if choice == 2:
            return self.constant(int(self.rng.integers(-40, 90)), "index")
        if choice == 3:
            kind = self.pick(list(INTEGERS))
            dims = self.pick([("B",), ("H",), ("M",), ("N",), ("B", "M"), ("B", "N"), ("H", "N"), ("B", "H", "M")])
            name, meaning = self.captured(dims, kind, "ids")
            if kind != "index":
                name = self.line(f"arith.index_cast {name} : {kind} to index")
            return name, lambda env: meaning(env).astype(np.int64)
        (x, fx), (y, fy) = self.index(depth - 1), self.index(depth - 1)
        if choice < 6:
            op, f = self.pick([("addi", np.add), ("subi", np.subtract)])
        elif choice == 6:
            op, f = self.pick([("maxsi", np.maximum), ("minsi", np.minimum)])
        elif choice == 7:
            y, fy = self.constant(int(self.rng.integers(1, 40)), "index")
            op, f = self.pick([
                ("floordivsi", np.floor_divide), ("divsi", lambda a, b: np.trunc(a / b).astype(np.int64)),
                ("remsi", np.fmod), ("ceildivsi", lambda a, b: -np.floor_divide(-np.asarray(a), b))])
        elif choice == 8:
            y, fy = self.constant(int(self.rng.integers(-3, 4)), "index")
            op, f = "muli", np.multiply
        else:
            condition, fc = self.boolean(depth - 1)
            name = self.line(f"arith.select {condition}, {x}, {y} : index")
            return name, lambda env: np.where(fc(env), fx(env), fy(env))
        return self.line(f"arith.{op} {x}, {y} : index"), lambda env: f(fx(env), fy(env))

    def boolean(self, depth):
        choice = self.rng.integers(8) if depth > 0 else self.rng.integers(3)
        if choice == 7:
            x, fx = self.boolean(depth - 1)
            one = self.line("arith.constant true")
            return self.line(f"arith.xori {x}, {one} : i1"), lambda env: ~np.asarray(fx(env), bool)
        if choice > 4:
            (x, fx), (y, fy) = self.boolean(depth - 1), self.boolean(depth - 1)
            op, f = self.pick([("andi", np.logical_and), ("ori", np.logical_or), ("andi", np.logical_and),
                               ("xori", np.logical_xor)])
            return self.line(f"arith.{op} {x}, {y} : i1"), lambda env: f(fx(env), fy(env))
        if choice == 4:
            name, meaning = self.captured(self.pick([("B", "N"), ("M", "N"), ("B", "H", "N")]), "i1", "bools")
            return name, lambda env: meaning(env).astype(bool)
        (x, fx), (y, fy) = self.index(depth), self.index(depth - 1)
        predicate, f = self.pick([
            ("slt", np.less), ("sle", np.less_equal), ("sgt", np.greater), ("sge", np.greater_equal),
            ("sle", np.less_equal), ("eq", np.equal), ("ne", np.not_equal)])
        if self.rng.random() < 0.25:
            x, y = (self.line(f"arith.index_cast {v} : index to i32") for v in (x, y))
            return self.line(f"arith.cmpi {predicate}, {x}, {y} : i32"), lambda env: f(fx(env), fy(env))
        return self.line(f"arith.cmpi {predicate}, {x}, {y} : index"), lambda env: f(fx(env), fy(env))

    def number(self, depth):
        """An f32 that does not depend on the score."""
        choice = self.rng.integers(4)
        if choice == 0 or depth == 0:
            return self.constant(round(float(self.rng.normal()), 3), "f32")
        if choice == 1:
            kind = self.pick(list(FLOATS))
            name, meaning = self.captured(
                self.pick([("H",), ("B", "H"), ("N",), ("M", "N"), ("H", "N"), ("B", "H", "M", "N")]), kind, "bias")
            if kind != "f32":
                name = self.line(f"arith.extf {name} : {kind} to f32")
            return name, meaning
        x, fx = self.index(depth - 1)
        name = self.line(f"arith.index_cast {x} : index to i32")
        name = self.line(f"arith.sitofp {name} : i32 to f32")
        factor, _ = self.constant(0.03125, "f32")
        name = self.line(f"arith.mulf {name}, {factor} : f32")
        name = self.line(f"math.sin {name} : f32")
        return name, lambda env: np.sin(np.asarray(fx(env), np.float64) * 0.03125)

    def score(self, depth, is_outermost=True):
        """A smooth function of the score: comparing rounded scores with exact ones would tell nothing."""
        if depth == 0:
            return f"%{self.arguments['s']}", lambda env: env["s"]
        x, fx = self.score(depth - 1, is_outermost=False)
        # What comes after might make +inf of -inf.
        choice = self.rng.integers(7 if is_outermost else 5)
        if choice == 1:
            y, fy = self.number(2)
            return self.line(f"arith.addf {x}, {y} : f32"), lambda env: fx(env) + fy(env)
        if choice == 0:
            y, fy = self.number(1)
            name = self.line(f"arith.subf {x}, {y} : f32")
            return self.line(f"math.absf {name} : f32"), lambda env: np.abs(fx(env) - fy(env))
        if choice == 2:
            c, fc = self.constant(round(float(self.rng.uniform(-2, 2)), 3), "f32")
            return self.line(f"arith.mulf {x}, {c} : f32"), lambda env: fx(env) * fc(env)
        if choice == 3:
            name = self.line(f"math.tanh {x} : f32")
            c, fc = self.constant(round(float(self.rng.uniform(0.5, 8)), 3), "f32")
            return self.line(f"arith.mulf {name}, {c} : f32"), lambda env: np.tanh(fx(env)) * fc(env)
        if choice == 4:
            condition, fc = self.boolean(2)
            y, fy = self.number(1)
            return (self.line(f"arith.select {condition}, {x}, {y} : f32"),
                    lambda env: np.where(fc(env), fx(env), fy(env)))
        if choice > 4:
            condition, fc = self.boolean(2)
            y = self.line("arith.constant 0xFF800000 : f32")
            return (self.line(f"arith.select {condition}, {x}, {y} : f32"),
                    lambda env: np.where(fc(env), fx(env), -np.inf))

    def text(self, kind, result):
        names = ", ".join(f"%{self.arguments[letter]}" for letter in ("s" if kind == "score" else "") + "bhmn")
        body = "".join(f"      {line}\n" for line in self.lines)
        return f"    {kind}({names}) {{\n{body}      attn.yield {result} : {'f32' if kind == 'score' else 'i1'}\n    }}\n"


def aligned(env, alignment):
    return env["m"] + (env["N"] - env["M"] if alignment == "bottom_right" else 0)


class Attention:
    """One `attn.attention` of a program."""

    def __init__(self, program, rng, query, key, value, result):
        self.program, self.rng = program, rng
        self.operands, self.result = (query, key, value), result
        self.variants, self.variant_captures = [], []
        self.keeps, self.scores = [], []
        self.scale = self.sink = None
        self.at = None
        self.regions = ""
        pick = lambda choices: choices[rng.integers(len(choices))]
        if rng.random() < 0.25:
            self.at = [int(rng.integers(0, 20)) if i > 1 and rng.random() < 0.7 else 0 for i in range(4)]
        if rng.random() < 0.7 and self.at is None:
            for _ in range(rng.integers(1, 4)):
                self.add_variant(pick)
        # Regions that are there come before variants.
        if rng.random() < 0.4:
            region = Region(program, rng, {letter: f"s{letter}{program.fresh()}" for letter in "sbhmn"}, self.at)
            name, meaning = region.score(int(rng.integers(1, 4)))
            self.regions += region.text("score", name)
            self.scores.insert(0, meaning)
        if rng.random() < 0.6:
            region = Region(program, rng, {letter: f"m{letter}{program.fresh()}" for letter in "bhmn"}, self.at)
            name, meaning = region.boolean(int(rng.integers(1, 4)))
            self.regions += region.text("mask", name)
            self.keeps.append(meaning)
        if rng.random() < 0.3:
            self.scale = program.scalar(round(float(rng.uniform(-0.5, 1)), 3))
        if rng.random() < 0.3:
            self.sink = program.capture("f32", ("H",), "bias")

    def add_variant(self, pick):
        rng, program = self.rng, self.program
        alignment = pick(["top_left", "bottom_right"])

        def integer(kinds):
            return REFUSED if rng.random() < 0.03 else pick(kinds)

        def tensor(kind, dims, draw):
            capture = program.capture(kind, dims, draw)
            capture.is_exact = True
            self.variant_captures.append(capture)
            return capture.name

        name = pick(["causal", "causal", "window", "prefix", "prefixes", "chunked", "document", "key_length", "softcap",
                     "alibi", "relative_bias"])
        if name == "causal":
            self.variants.append(f"#attn.causal<{alignment}>")
            self.keeps.append(lambda env: env["n"] <= aligned(env, alignment))
        elif name == "window":
            left, right = (int(rng.integers(-1, 40)) for _ in range(2))
            self.variants.append(f"#attn.window<{left}, {right}, {alignment}>")
            self.keeps.append(lambda env: ((left < 0) | (env["n"] >= aligned(env, alignment) - left))
                              & ((right < 0) | (env["n"] <= aligned(env, alignment) + right)))
        elif name == "prefix":
            length = int(rng.integers(0, 60))
            self.variants.append(f"#attn.prefix<{length}, {alignment}>")
            self.keeps.append(lambda env: (env["n"] < length) | (env["n"] <= aligned(env, alignment)))
        elif name == "prefixes":
            lengths = tensor(integer(["i32", "i64", "index"]), ("B",), "lengths")
            self.variants.append(f"#attn.prefix<-1, {alignment}>")
            self.keeps.append(lambda env: (env["n"] < env[lengths].reshape(-1, 1, 1, 1))
                              | (env["n"] <= aligned(env, alignment)))
        elif name == "chunked":
            size = int(rng.integers(1, 50))
            self.variants.append(f"#attn.chunked<{size}, {alignment}>")
            self.keeps.append(lambda env: env["n"] // size == aligned(env, alignment) // size)
        elif name == "document":
            kind = integer(["i8", "i32", "i64"])
            ids_q, ids_k = tensor(kind, ("B", "M"), "ids"), tensor(kind, ("B", "N"), "ids")
            self.variants.append("#attn.document")
            self.keeps.append(lambda env: env[ids_q][:, None, :, None] == env[ids_k][:, None, None, :])
        elif name == "key_length":
            lengths = tensor(integer(["i32", "i64", "index"]), ("B",), "lengths")
            self.variants.append("#attn.key_length")
            self.keeps.append(lambda env: env["n"] < env[lengths].reshape(-1, 1, 1, 1))
        elif name == "softcap":
            cap = float(pick([0.5, 2, 30]))
            self.variants.append(f"#attn.softcap<{cap} : f32>")
            self.scores.append(lambda env: cap * np.tanh(env["s"] / cap))
        elif name == "alibi":
            slopes = tensor(pick(list(FLOATS)), ("H",), "slopes")
            self.variants.append(f"#attn.alibi<{alignment}>")
            self.scores.append(lambda env: env["s"] - env[slopes].reshape(1, -1, 1, 1)
                               * np.abs(aligned(env, alignment) - env["n"]))
        else:
            columns, offset = int(rng.integers(1, 60)), int(rng.integers(0, 40))
            bias = tensor(pick(list(FLOATS)), ("H", columns), "bias")
            self.variants.append(f"#attn.relative_bias<{offset}, {alignment}>")
            self.scores.append(lambda env: env["s"] + env[bias][
                np.arange(env["H"]).reshape(1, -1, 1, 1),
                np.clip(aligned(env, alignment) - env["n"] + offset, 0, columns - 1)])

    def text(self):
        program = self.program
        text = f"  %{self.result}, %{self.result}_lse = attn.attention " + ", ".join(f"%{x}" for x in self.operands)
        if self.variants:
            text += f" variants [{', '.join(self.variants)}]"
        if self.variant_captures:
            text += (f" captures({', '.join('%' + c.name for c in self.variant_captures)} : "
                     f"{', '.join(c.type for c in self.variant_captures)})")
        if self.scale:
            text += f" scale(%{self.scale})"
        if self.sink:
            text += f" sink(%{self.sink.name} : {self.sink.type})"
        if self.at:
            names = [program.index(value) for value in self.at]
            text += f" at({', '.join(names)})"
        types = [program.types[x] for x in self.operands]
        return f"{text}\n{self.regions}    : {', '.join(types)} -> {program.types[self.result]}, {program.lse_type}\n"

    def evaluate(self, env):
        """s1 to s6 in f64. Adds the output, rounded to its type, and the logarithm to `env`."""
        q, k, v = (np.asarray(env[x], np.float64) for x in self.operands)
        batch, heads, rows, d = q.shape
        keys, group = k.shape[2], heads // k.shape[1]
        k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
        at = self.at or [0] * 4
        local = dict(env)
        for axis, (letter, extent) in enumerate(zip("bhmn", (batch, heads, rows, keys))):
            shape = [1] * 4
            shape[axis] = extent
            local[letter] = (np.arange(extent, dtype=np.int64) + at[axis]).reshape(shape)
        scale = np.float64(np.float32(env[self.scale])) if self.scale else d**-0.5
        s = np.matmul(q, np.swapaxes(k, 2, 3)) * scale
        for score in self.scores:
            local["s"] = s
            s = np.broadcast_to(score(local), s.shape).astype(np.float64)
        keep = np.ones(s.shape, bool)
        for mask in self.keeps:
            keep &= np.broadcast_to(np.asarray(mask(local), bool), s.shape)
        s = np.where(keep, s, -np.inf)
        sink = np.asarray(env[self.sink.name], np.float64).reshape(1, -1, 1, 1) if self.sink else np.float64(-np.inf)
        top = np.maximum(np.max(s, axis=3, keepdims=True, initial=-np.inf), sink)
        safe = np.where(np.isfinite(top), top, 0)
        weights = np.exp(s - safe)
        total = weights.sum(axis=3, keepdims=True) + np.exp(sink - safe)
        with np.errstate(divide="ignore", invalid="ignore"):
            output = np.where(total > 0, np.matmul(weights, v) / total, 0)
            lse = (safe + np.log(total))[..., 0]
        env[self.result], env[self.result + "_lse"] = output, lse


class Program:
    """A function with one attention, or two where the second reads the first's output."""

    has_letters = True


    def __init__(self, seed, gpu=False):
        self.rng = rng = np.random.default_rng(seed)
        self.seed, self.count = seed, 0
        self.captures, self.scalars, self.constants, self.types = [], {}, [], {}
        pick = lambda choices: choices[rng.integers(len(choices))]
        self.kind = pick(["f16", "bf16"] if gpu else ["f32", "f32", "f16", "bf16"])
        self.is_chain = rng.random() < 0.12
        self.d = int(pick([32, 64, 128] if gpu else [1, 3, 8, 16, 16, 24, 33, 64, 64, 128]))
        self.dv = self.d if self.is_chain or rng.random() < 0.6 else int(pick([32, 64, 128] if gpu else [1, 5, 16, 40, 64]))
        self.group = int(pick([1, 1, 2, 4]))
        # Any extent may be in the type; then all calls have it.
        self.fixed = {letter: int(extent) for letter, extent in
                      (("B", 2), ("Hkv", 2), ("M", pick([1, 5, 64, 70])), ("N", pick([1, 7, 64, 130])))
                      if rng.random() < 0.12}
        if "Hkv" in self.fixed:
            self.fixed["H"] = self.fixed["Hkv"] * self.group
        for name, letters, columns in (("q", ("B", "H", "M"), self.d), ("k", ("B", "Hkv", "N"), self.d),
                                       ("v", ("B", "Hkv", "N"), self.dv), ("o", ("B", "H", "M"), self.dv),
                                       ("p", ("B", "H", "M"), self.dv)):
            extents = "x".join(str(self.fixed.get(letter, "?")) for letter in letters)
            self.types[name] = f"tensor<{extents}x{columns}x{self.kind}>"
            if name == "o":
                self.lse_type = f"tensor<{extents}xf32>"
        self.attentions = [Attention(self, rng, "q", "k", "v", "o")]
        if self.is_chain:
            self.attentions.append(Attention(self, rng, "o", "k", "v", "p"))
        # What another attention reads is a result too, the first of all: rounded the other way it is a neighbour, which
        # no bound on the last result knows.
        self.results = [(a.result, self.kind) for a in self.attentions]
        if rng.random() < 0.5:
            self.results.append((self.attentions[-1].result + "_lse", "f32"))
        self.options = {}
        if rng.random() < 0.4:
            self.options["splits"] = int(rng.integers(1, 8))
        if rng.random() < 0.3:
            self.options["block-m"] = int(pick([64, 128] if gpu else [1, 3, 16, 33, 64]))
        if rng.random() < 0.3:
            self.options["block-n"] = int(pick([32, 64, 128] if gpu else [1, 7, 16, 48, 100]))

    def fresh(self):
        self.count += 1
        return self.count

    def capture(self, kind, dims, draw):
        self.captures.append(Capture(f"c{self.fresh()}", kind, dims, draw))
        return self.captures[-1]

    def scalar(self, value):
        name = f"scale{self.fresh()}"
        self.scalars[name] = value
        return name

    def index(self, value):
        name = f"%at{self.fresh()}"
        self.constants.append(f"  {name} = arith.constant {value} : index\n")
        return name

    def text(self):
        body = "".join(attention.text() for attention in self.attentions)
        arguments = [f"%{x}: {self.types[x]}" for x in "qkv"]
        arguments += [f"%{c.name}: {c.type}" for c in self.captures] + [f"%{s}: f32" for s in self.scalars]
        results = [f"%{name}" for name, _ in self.results]
        types = [self.types.get(name, self.lse_type) for name, _ in self.results]
        return (f"func.func @f({', '.join(arguments)}) -> ({', '.join(types)}) {{\n{''.join(self.constants)}{body}"
                f"  return {', '.join(results)} : {', '.join(types)}\n}}\n")

    def extents(self, rng, largest=140):
        def draw(letter, choices):
            return self.fixed.get(letter, int(choices[rng.integers(len(choices))]))

        m = draw("M", [1, 2, 17, 33, 64, 65, largest, int(rng.integers(1, largest))])
        n = draw("N", [1, 3, 16, 64, 100, largest, int(rng.integers(1, largest))])
        batch, key_heads = draw("B", [1, 2, 3]), draw("Hkv", [1, 2])
        return {"B": batch, "Hkv": key_heads, "H": key_heads * self.group, "M": m, "N": n}

    def inputs(self, rng, extents):
        """All arguments by name, in order, as arrays of values that their types hold."""
        env = dict(extents)
        for name, heads, rows, columns in (("q", "H", "M", self.d), ("k", "Hkv", "N", self.d), ("v", "Hkv", "N", self.dv)):
            env[name] = rounded(rng.normal(size=(extents["B"], extents[heads], extents[rows], columns)), self.kind)
        shifts = [a.at for a in self.attentions if a.at]
        for c in self.captures:
            # Positions start at `at`, so what they read is larger.
            shape = [extents[d] + max([at["BHMN".index(d)] for at in shifts if not c.is_exact], default=0)
                     if isinstance(d, str) and d in "BHMN" else d for d in c.dims]
            if c.draw == "ids":
                array = np.sort(rng.integers(0, 5, size=shape), axis=-1)
            elif c.draw == "lengths":
                array = rng.integers(0, extents["N"] + 1, size=shape)
            elif c.draw == "bools":
                array = rng.integers(0, 2, size=shape)
            elif c.draw == "slopes":
                array = rounded(rng.uniform(0, 0.5, size=shape), c.kind)
            else:
                array = rounded(rng.normal(size=shape), c.kind)
            env[c.name] = array
        for name, value in self.scalars.items():
            env[name] = value
        return env

    @property
    def refused(self):
        """A type of an argument that no caller can pass, or nothing."""
        return REFUSED if any(c.kind == REFUSED for c in self.captures) else None

    def arguments(self):
        return [("q", self.kind), ("k", self.kind), ("v", self.kind)] + [(c.name, c.kind) for c in self.captures] + [
            (name, None) for name in self.scalars]

    def evaluate(self, env, given=()):
        """The results in f64. What is given of them, by position, is what later attentions read."""
        env = dict(env)
        for i, attention in enumerate(self.attentions):
            attention.evaluate(env)
            if i + 1 < len(self.attentions):
                exact = env[attention.result]
                env[attention.result] = given[i] if given else rounded(exact, self.kind)
                env["exact", attention.result] = exact
        return [env.get(("exact", name), env.get(name)) for name, _ in self.results]
