"""Convolution by direct loops, for programs that convolve inside a loop.

Every operand comes flattened with its strides, so one kernel serves all layouts. The innermost
loop runs along the last spatial axis with the weight held fixed, which vectorises where that axis
is contiguous and the stride is 1.
"""

from __future__ import annotations

from fnarray_kernels.registry import compiled
from fnarray_kernels.scalar import u


@compiled
def _element(o, k, n, stride, low, base, spread):
    """Return the operand's index under window element ``k`` at place ``o``; -1 in padding."""
    at = o * stride + k * spread - low
    if at < 0 or at % base or at // base >= n:
        return -1
    return at // base


@compiled
def _row(lhs, weight, out, x, y, x_step, y_step, k, n, places, stride, low, base, spread):
    """Add a row of products: ``out[y + o * y_step] += weight * lhs[x + at(o) * x_step]``."""
    if base > 1:
        for o in range(places):
            at = _element(o, k, n, stride, low, base, spread)
            if at >= 0:
                out[u(y + o * y_step)] += weight * lhs[u(x + at * x_step)]
        return
    shift = k * spread - low
    start = max(0, -(shift // stride))
    stop = min(places, (n - 1 - shift) // stride + 1)
    x += (start * stride + shift) * x_step
    y += start * y_step
    if x_step * stride == 1 and y_step == 1:
        for o in range(stop - start):
            out[u(y + o)] += weight * lhs[u(x + o)]
    else:
        for o in range(stop - start):
            out[u(y + o * y_step)] += weight * lhs[u(x + o * stride * x_step)]


@compiled
def direct(lhs, rhs, out, batch, out_features, features, feature_groups, batch_groups, *sizes):
    """Convolve; ``sizes`` holds strides of lhs, rhs and out (batch or output, feature, three
    spatial), then triples: spatial shape, window, places, window strides, low padding, distances
    of neighbours in lhs and in the window.
    """
    xn, xc, x0, x1, x2, wo, wc, w0, w1, w2, yn, yc, y0, y1, y2 = sizes[:15]
    n0, n1, n2, k0, k1, k2, p0, p1, p2, s0, s1, s2 = sizes[15:27]
    l0, l1, l2, b0, b1, b2, d0, d1, d2 = sizes[27:]
    share = out_features // (feature_groups * batch_groups)
    out[:] = 0
    for image in range(batch):
        for f in range(out_features):
            group = f // share
            if batch_groups > 1:
                x_base = (group * batch + image) * xn
            else:
                x_base = image * xn + group * features * xc
            y_base = image * yn + f * yc
            for c in range(features):
                for i in range(k0):
                    for j in range(k1):
                        for k in range(k2):
                            weight = rhs[u(f * wo + c * wc + i * w0 + j * w1 + k * w2)]
                            for a in range(p0):
                                at0 = _element(a, i, n0, s0, l0, b0, d0)
                                if at0 < 0:
                                    continue
                                for b in range(p1):
                                    at1 = _element(b, j, n1, s1, l1, b1, d1)
                                    if at1 < 0:
                                        continue
                                    x = x_base + c * xc + at0 * x0 + at1 * x1
                                    y = y_base + a * y0 + b * y1
                                    _row(
                                        lhs, weight, out, x, y, x2, y2,
                                        k, n2, p2, s2, l2, b2, d2,
                                    )  # fmt: skip
