"""Score and mask functions, compiled and beside the definition."""

import attn
import reference


def check_score(inputs, score, **arguments):
    q, k, v = inputs
    got = attn.attention(q, k, v, score=score, **arguments)
    reference.check(got, reference.attention(q, k, v, score=score, **arguments)[0])


def check_mask(inputs, mask, **arguments):
    q, k, v = inputs
    got, lse = attn.attention(q, k, v, mask=mask, return_lse=True, **arguments)
    wanted, wanted_lse = reference.attention(q, k, v, mask=mask, **arguments)
    reference.check(got, wanted)
    reference.check(lse, wanted_lse)
