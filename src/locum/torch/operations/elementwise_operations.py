"""Define the constructions of elementwise ATen operations.

A transformer computes elementwise operations in its feed-forwards. A formula is a function of s-ops.
The parameters of a formula are the arguments of an ATen overload in the order of the schema, including
arguments with default values. Each step of a formula is rounded to one computing dtype. The result is
then rounded once to the dtype of the output.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from locum.constructions.tensor import Layout, Tensor, reduce_sum
from locum.errors import GraphError
from locum.rasp.handles import SOp, apply
from locum.rasp.python import cos, erf, exp, log, sin, sqrt, tanh, where
from locum.torch.numbers import (
    HALF,
    INTEGERS,
    cast,
    common_type,
    compute,
    computing_type,
    convert,
    dtype_name,
    is_float,
    read,
    require,
    truncate,
)
from locum.torch.table import find_overload, operation

Formula = Callable[..., SOp]

_PI = math.pi


def complete(name: str, given: tuple[Any, ...], options: dict[str, Any]) -> list[Any]:
    """Return all arguments of the overload ``name`` in the order of its schema, including defaults."""
    arguments = list(given)
    for argument in find_overload(name)._schema.arguments[len(given) :]:
        arguments.append(options.get(argument.name, argument.default_value))
    return arguments


def formula(*names: str, dtype: str = "", exact: bool = False) -> Callable[[Formula], Formula]:
    """Return a decorator that registers a formula as the construction of the overloads ``names``.

    The formula is computed in ``dtype``. The default is the computing dtype of the result: float32 for
    half precision, and the dtype of the result otherwise. An ``exact`` formula needs no rounding and is
    computed in the dtype of the result.
    """

    def register(function: Formula) -> Formula:
        for name in names:

            def construct(out: Layout, *given: Any, name: str = name, **options: Any) -> Tensor:
                operands = complete(name, given, options)
                return compute(out, function, *operands, dtype=out.dtype if exact else dtype)

            construct.__doc__ = function.__doc__
            operation("elementwise", name)(construct)
        return function

    return register


# Arithmetic -----------------------------------------------------------------------------------------


@operation("elementwise", "add.Tensor", "add.Scalar")
def add(out: Layout, a: Any, b: Any, alpha: Any = 1) -> Tensor:
    """Return a + alpha · b. For booleans, + is the logical OR, and · is the logical AND."""
    if out.dtype == "bool":
        return compute(out, lambda x, y, z: x | (z & y), a, b, alpha)
    return _sum(out, a, b, alpha)


@operation("elementwise", "sub.Tensor", "sub.Scalar")
def sub(out: Layout, a: Any, b: Any, alpha: Any = 1) -> Tensor:
    """Return a − alpha · b."""
    return _sum(out, a, b, -alpha)


def _sum(out: Layout, a: Any, b: Any, alpha: Any) -> Tensor:
    """Return a + alpha · b, where ``a`` and ``b`` are first converted to the dtype of the result."""
    if alpha == 1:
        return compute(out, lambda x, y: x + y, a, b, operand_dtype=out.dtype)
    if alpha == -1:
        return compute(out, lambda x, y: x - y, a, b, operand_dtype=out.dtype)
    dtype = "float64" if is_float(out.dtype) else ""  # as a fused multiply-add in float32
    return compute(out, lambda x, y, z: x + z * y, a, b, alpha, dtype=dtype, operand_dtype=out.dtype)


@operation("elementwise", "mul.Tensor", "mul.Scalar")
def mul(out: Layout, a: Any, b: Any) -> Tensor:
    """Return a · b, or the logical AND of ``a`` and ``b`` for booleans."""
    if out.dtype == "bool":
        return compute(out, lambda x, y: x & y, a, b)
    return compute(out, lambda x, y: x * y, *_factors(out, a, b))


def _factors(out: Layout, a: Any, b: Any) -> tuple[Any, Any]:
    """Return the operands of a product or quotient, cast to the dtype of a half-precision result.

    As in PyTorch on a CPU, a second operand without dimensions is not cast.
    """
    if out.dtype not in HALF:
        return a, b
    first = cast(a, out.dtype) if isinstance(a, Tensor) else a
    return first, cast(b, out.dtype) if isinstance(b, Tensor) and b.shape else b


@operation("elementwise", "div.Tensor", "div.Scalar")
def div(out: Layout, a: Any, b: Any) -> Tensor:
    """Return a / b."""
    return compute(out, lambda x, y: x / y, *_factors(out, a, b))


@operation("elementwise", "div.Tensor_mode", "div.Scalar_mode")
def div_mode(out: Layout, a: Any, b: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Return a / b, rounded down, rounded towards 0 or not rounded, as ``rounding_mode`` specifies."""
    if rounding_mode is None:
        return div(out, a, b)
    require_divisor(out, b)
    a, b = _factors(out, a, b)
    if rounding_mode == "floor":
        return compute(out, lambda x, y: x // y, a, b)
    if is_float(out.dtype):
        return compute(out, lambda x, y: truncate(x / y), a, b)
    return compute(out, lambda x, y: _with_sign((x < 0) != (y < 0), abs(x) // abs(y)), a, b)


@operation("elementwise", "remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(out: Layout, a: Any, b: Any) -> Tensor:
    """Return a − b · ⌊a / b⌋. A remainder of 0 has the sign of ``a``."""
    require_divisor(out, b)
    return compute(out, lambda x, y: _rest(x, x % y), a, b, operand_dtype=out.dtype)


@operation("elementwise", "fmod.Tensor", "fmod.Scalar")
def fmod(out: Layout, a: Any, b: Any) -> Tensor:
    """Return the remainder of a / b if the quotient is rounded towards 0. The remainder has the sign of
    ``a``.
    """
    require_divisor(out, b)

    def function(x: SOp, y: SOp) -> SOp:
        return _rest(x, _with_sign(x < 0, abs(x) % abs(y)))

    return compute(out, function, a, b, operand_dtype=out.dtype)


def _rest(x: SOp, rest: SOp) -> SOp:
    """Return ``rest``, the remainder of a division of ``x``. A remainder of 0 has the sign of ``x``."""
    return where(rest == 0, 0.0 * x, rest)


def require_divisor(out: Layout, b: Any) -> None:
    """Add a check to the program that raises an error if an integer divisor in ``b`` is 0."""
    if out.dtype in INTEGERS and 0 not in out.shape:
        zeros = Layout(out.shape, out.strides).result(where(read(out, b, out.dtype) == 0, 1, 0))
        count = reduce_sum(Layout((), ()), zeros, range(len(out.shape))).sop
        require(count, "expected divisors other than 0, got 0")


@operation("elementwise", "addcmul")
def addcmul(out: Layout, x: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Tensor:
    """Return x + value · a · b.

    For floats, the last product and the sum are computed in float64, and the sum is rounded to the
    result's dtype.
    """
    if not is_float(out.dtype):
        return compute(out, lambda x, y, z, v: x + v * y * z, x, a, b, value)
    narrow = functools.partial(_narrow, computing_type(out.dtype))
    return compute(out, lambda x, y, z, v: x + narrow(v * y) * z, x, a, b, value, dtype="float64")


@formula("addcdiv")
def addcdiv(x: SOp, a: SOp, b: SOp, value: SOp) -> SOp:
    """Return x + value · a / b."""
    return x + value * a / b


@operation("elementwise", "lerp.Scalar", "lerp.Tensor")
def lerp(out: Layout, start: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Return start + weight · (end − start).

    The last product and the sum are computed in float64, and the sum is rounded to the result's dtype.
    """
    narrow = functools.partial(_narrow, computing_type(out.dtype))

    def function(x: SOp, y: SOp, w: SOp) -> SOp:
        gap, rest = narrow(y - x), narrow(1.0 - w)
        return where(abs(w) < 0.5, x + w * gap, y - gap * rest)

    return compute(out, function, start, end, weight, dtype="float64")


def _narrow(dtype: str, value: SOp) -> SOp:
    """Round an intermediate result of a float64 formula to the narrower dtype ``dtype``."""
    return apply("float64", apply(dtype, value))


def _with_sign(negative: SOp, magnitude: SOp) -> SOp:
    """Return −``magnitude`` where ``negative`` is true, and ``magnitude`` elsewhere."""
    return where(negative, -magnitude, magnitude)


# Signs and rounding ---------------------------------------------------------------------------------


@formula("neg", exact=True)
def neg(x: SOp) -> SOp:
    """Return −x."""
    return -x


@formula("abs", exact=True)
def absolute(x: SOp) -> SOp:
    """Return the absolute value of x."""
    return abs(x)


@formula("sign", "sgn", exact=True)
def sign(x: SOp) -> SOp:
    """Return 1 for positive numbers, −1 for negative numbers, and 0 for 0 and NaN."""
    return where(x > 0, 1.0, where(x < 0, -1.0, 0.0))


@operation("elementwise", "signbit")
def signbit(out: Layout, a: Tensor) -> Tensor:
    """Return whether the sign bit of ``a`` is set, which includes −0. NaN is treated as positive."""
    return compute(out, is_negative if is_float(a.dtype) else lambda x: x < 0, a, dtype=a.dtype)


@formula("copysign.Tensor", "copysign.Scalar", exact=True)
def copysign(x: SOp, y: SOp) -> SOp:
    """Return x with the sign of y."""
    return _with_sign(is_negative(x) != is_negative(y), x)


def is_negative(x: SOp) -> SOp:
    """Return whether a float is negative, which includes −0."""
    return where(x == 0, 1.0 / x, x) < 0


@formula("floor", exact=True)
def floor(x: SOp) -> SOp:
    """Return x rounded down to an integer."""
    return apply("floor", x)


@formula("ceil", exact=True)
def ceil(x: SOp) -> SOp:
    """Return x rounded up to an integer."""
    return -apply("floor", -x)


@formula("trunc", exact=True)
def trunc(x: SOp) -> SOp:
    """Return x rounded towards 0 to an integer."""
    return truncate(x)


@formula("round", exact=True)
def round_(x: SOp) -> SOp:
    """Return x rounded to the nearest integer, with ties rounded to even."""
    return apply("round", x)


@operation("elementwise", "round.decimals")
def round_decimals(out: Layout, a: Tensor, *, decimals: int) -> Tensor:
    """Return ``a`` rounded to ``decimals`` decimal places. If ``decimals`` is negative, digits to the
    left of the decimal point are rounded. Integers are returned unchanged.
    """
    if decimals == 0 or not is_float(out.dtype):
        return compute(out, round_, a)
    power = 10.0 ** abs(decimals)
    if decimals > 0:
        return compute(out, lambda x, y: apply("round", x * y) / y, a, power)
    return compute(out, lambda x, y: apply("round", x / y) * y, a, power)


# Powers, exponentials and logarithms ----------------------------------------------------------------


@formula("reciprocal")
def reciprocal(x: SOp) -> SOp:
    """Return 1 / x."""
    return 1.0 / x


@formula("sqrt")
def square_root(x: SOp) -> SOp:
    """Return the square root of x."""
    return sqrt(x)


@formula("rsqrt")
def rsqrt(x: SOp) -> SOp:
    """Return 1 / √x."""
    return 1.0 / sqrt(x)


#: Formulas of exponents that PyTorch computes without a power function.
_POWERS: dict[float, Formula] = {
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    -1.0: reciprocal,
    -2.0: lambda x: 1.0 / (x * x),
}
#: Formulas that differ from a power function at −0 and −∞. PyTorch does not use them in float16.
_ROOTS: dict[float, Formula] = {0.5: sqrt, -0.5: rsqrt}


@operation("elementwise", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def power(out: Layout, a: Any, b: Any) -> Tensor:
    """Return ``a`` to the power of ``b``."""
    if not is_float(out.dtype):
        return compute(out, _whole_power, a, b)
    known = _POWERS if out.dtype == "float16" else _POWERS | _ROOTS
    if isinstance(b, (int, float)) and b in known:
        return compute(out, known[b], a)
    return compute(out, lambda x, y: x**y, a, b, operand_dtype=out.dtype)


def _whole_power(x: SOp, y: SOp) -> SOp:
    """Return an integer power of an integer.

    Powers with negative exponents are rounded towards 0. Such powers of 0 are 0.
    """
    odd = y % 2 == 1
    below = where(x == 1, 1, where(x == -1, where(odd, -1, 1), 0))
    return where(y < 0, below, x ** abs(y))


@formula("exp")
def exponential(x: SOp) -> SOp:
    """Return e to the power of x."""
    return exp(x)


@formula("exp2")
def exp2(x: SOp) -> SOp:
    """Return 2 to the power of x."""
    return 2.0**x


@operation("elementwise", "ldexp.Tensor")
def ldexp(out: Layout, a: Tensor, b: Tensor) -> Tensor:
    """Return a · 2ᵇ. If ``a`` contains floats and ``b`` contains integers, only the product is rounded.
    Otherwise, 2ᵇ is first rounded to the dtype of ``b`` if it is a float dtype, and to the default
    dtype otherwise.
    """
    if is_float(a.dtype) and not is_float(b.dtype):
        return compute(out, _scale_by_power, a, b, dtype="float64")
    default = dtype_name(torch.get_default_dtype())
    if not is_float(a.dtype) and not is_float(b.dtype) and out.dtype != default:
        # PyTorch's fake tensors always have the dtype float32 for integers.
        raise GraphError(
            f"ldexp: integers are not supported with the default dtype {default}; try x * 2.0**y"
        )
    powers = Layout.contiguous(b.shape, b.dtype if is_float(b.dtype) else default)
    return mul(out, a, compute(powers, exp2, b))


def _scale_by_power(x: SOp, y: SOp) -> SOp:
    """Return x · 2ʸ in float64, for an integer y. Three factors prevent an overflow of the power."""
    bounded = where(y > 2100.0, 2100.0, where(y < -2100.0, -2100.0, y))
    third = apply("floor", bounded / 3.0)
    factor = 2.0**third
    return x * factor * factor * 2.0 ** (bounded - 2.0 * third)


@formula("expm1", dtype="float64")
def expm1(x: SOp) -> SOp:
    """Return e to the power of x, minus 1, without cancellation near 0."""
    half = tanh(x / 2.0)
    return where(abs(x) < 1.0, 2.0 * half / (1.0 - half), exp(x) - 1.0)


@formula("log")
def logarithm(x: SOp) -> SOp:
    """Return the natural logarithm of x."""
    return log(x)


@formula("log1p", dtype="float64")
def log1p(x: SOp) -> SOp:
    """Return log(1 + x), without the rounding error of 1 + x near 0."""
    sum_ = 1.0 + x
    near = where(sum_ == 1.0, x, log(sum_) * (x / (sum_ - 1.0)))
    return where(abs(x) < 0.5, near, log(sum_))


@formula("log2", dtype="float64")
def log2(x: SOp) -> SOp:
    """Return the base-2 logarithm of x."""
    return log(x) / math.log(2.0)


@formula("log10", dtype="float64")
def log10(x: SOp) -> SOp:
    """Return the base-10 logarithm of x."""
    return log(x) / math.log(10.0)


# Trigonometric and hyperbolic functions -------------------------------------------------------------


@formula("sin")
def sine(x: SOp) -> SOp:
    """Return the sine of x."""
    return sin(x)


@formula("cos")
def cosine(x: SOp) -> SOp:
    """Return the cosine of x."""
    return cos(x)


@formula("tan", dtype="float64")
def tan(x: SOp) -> SOp:
    """Return the tangent of x."""
    return sin(x) / cos(x)


@formula("tanh")
def hyperbolic_tangent(x: SOp) -> SOp:
    """Return the hyperbolic tangent of x."""
    return tanh(x)


@formula("cosh", dtype="float64")
def cosh(x: SOp) -> SOp:
    """Return the hyperbolic cosine (eˣ + e⁻ˣ) / 2."""
    root = exp(abs(x) / 2.0)
    return root * (0.5 * root) + 0.5 / root / root


@formula("sinh", dtype="float64")
def sinh(x: SOp) -> SOp:
    """Return the hyperbolic sine (eˣ − e⁻ˣ) / 2, without cancellation near 0."""
    half, root = tanh(x / 2.0), exp(abs(x) / 2.0)
    far = root * (0.5 * root) - 0.5 / root / root
    return where(abs(x) < 1.0, 2.0 * half / (1.0 - half * half), _with_sign(x < 0, far))


@formula("asinh", dtype="float64")
def asinh(x: SOp) -> SOp:
    """Return the inverse hyperbolic sine of x."""
    size = abs(x)
    square = size * size
    near = log1p(size + square / (1.0 + sqrt(square + 1.0)))
    return where(x == 0, x, _with_sign(x < 0, where(size < 1e100, near, log(size) + math.log(2.0))))


@formula("acosh", dtype="float64")
def acosh(x: SOp) -> SOp:
    """Return the inverse hyperbolic cosine of x."""
    rest = x - 1.0
    near = log1p(rest + sqrt(2.0 * rest + rest * rest))
    return where(x < 1.0, math.nan, where(x < 1e100, near, log(x) + math.log(2.0)))


@formula("atanh", dtype="float64")
def atanh(x: SOp) -> SOp:
    """Return the inverse hyperbolic tangent of x."""
    size = abs(x)
    return where(x == 0, x, _with_sign(x < 0, 0.5 * log1p(2.0 * size / (1.0 - size))))


@formula("hypot", dtype="float64")
def hypot(x: SOp, y: SOp) -> SOp:
    """Return √(x² + y²) without overflow of the squares. The result is ∞ if x or y is infinite."""
    a, b = abs(x), abs(y)
    long, short = where(a > b, a, b), where(a > b, b, a)
    ratio = short / long
    infinite = (a == math.inf) | (b == math.inf)
    return where(infinite, math.inf, where(a + b == 0, 0.0, long * sqrt(1.0 + ratio * ratio)))


@formula("erf")
def error_function(x: SOp) -> SOp:
    """Return the error function of x."""
    return erf(x)


# Activations ----------------------------------------------------------------------------------------


@formula("relu", exact=True)
def relu(x: SOp) -> SOp:
    """Return x where x is positive, and 0 elsewhere. NaN remains NaN."""
    return where(x <= 0, 0.0, x)


@formula("sigmoid")
def sigmoid(x: SOp) -> SOp:
    """Return 1 / (1 + e⁻ˣ)."""
    return 1.0 / (1.0 + exp(-x))


@formula("sigmoid_backward")
def sigmoid_backward(grad: SOp, y: SOp) -> SOp:
    """Return the gradient of the input of a sigmoid with the result y."""
    return grad * (1.0 - y) * y


@formula("tanh_backward")
def tanh_backward(grad: SOp, y: SOp) -> SOp:
    """Return the gradient of the input of a hyperbolic tangent with the result y."""
    return grad * (1.0 - y * y)


@formula("silu")
def silu(x: SOp) -> SOp:
    """Return x · sigmoid(x), the SiLU activation."""
    return x / (1.0 + exp(-x))


@formula("silu_backward")
def silu_backward(grad: SOp, x: SOp) -> SOp:
    """Return the gradient of the input x of SiLU."""
    s = sigmoid(x)
    return grad * s * (1.0 + x * (1.0 - s))


_ROOT = math.sqrt(2.0 / _PI)
_CUBIC = 0.044715


@operation("elementwise", "gelu")
def gelu(out: Layout, a: Tensor, *, approximate: str = "none") -> Tensor:
    """Return x · Φ(x), the GELU activation, or its tanh approximation."""

    def by_erf(x: SOp) -> SOp:
        return x * 0.5 * (1.0 + erf(x * math.sqrt(0.5)))

    def by_tanh(x: SOp) -> SOp:
        return 0.5 * x * (1.0 + tanh(_ROOT * (x + _CUBIC * (x * x * x))))

    return compute(out, by_tanh if approximate == "tanh" else by_erf, a)


@operation("elementwise", "gelu_backward")
def gelu_backward(out: Layout, grad: Tensor, a: Tensor, *, approximate: str = "none") -> Tensor:
    """Return the gradient of the input of GELU, or of its tanh approximation."""

    def by_erf(g: SOp, x: SOp) -> SOp:
        density = exp(-0.5 * x * x) * math.sqrt(0.5 / _PI)
        return g * (0.5 * (1.0 + erf(x * math.sqrt(0.5))) + x * density)

    def by_tanh(g: SOp, x: SOp) -> SOp:
        t = tanh(_ROOT * (x + _CUBIC * (x * x * x)))
        slope = _ROOT * (1.0 + 3.0 * _CUBIC * (x * x))
        return g * (0.5 * (1.0 + t) + 0.5 * x * ((1.0 - t * t) * slope))

    return compute(out, by_tanh if approximate == "tanh" else by_erf, grad, a)


@formula("leaky_relu")
def leaky_relu(x: SOp, slope: SOp) -> SOp:
    """Return x where x is positive, and slope · x elsewhere."""
    return where(x > 0, x, slope * x)


@operation("elementwise", "leaky_relu_backward")
def leaky_relu_backward(
    out: Layout, grad: Tensor, a: Tensor, slope: float, self_is_result: bool
) -> Tensor:
    """Return the gradient of the input of leaky ReLU."""
    return compute(out, lambda g, x, z: where(x > 0, g, z * g), grad, a, slope)


@formula("elu", dtype="float64")
def elu(x: SOp, alpha: SOp, scale: SOp, input_scale: SOp) -> SOp:
    """Return scale · x where x is positive, else scale · alpha · (exp(input_scale · x) − 1)."""
    return where(x > 0, x * scale, expm1(x * input_scale) * (alpha * scale))


@formula("threshold_backward")
def threshold_backward(grad: SOp, x: SOp, threshold: SOp) -> SOp:
    """Return 0 where x is at most the threshold, and the gradient of the output elsewhere."""
    return where(x <= threshold, 0.0, grad)


# Maxima and bounds ----------------------------------------------------------------------------------


@formula("maximum", exact=True)
def maximum(x: SOp, y: SOp) -> SOp:
    """Return the larger of x and y, NaN if x or y is NaN, and 0 for the operands 0 and −0."""
    if _is_usual(y):
        return where(x <= y, y, x)
    same = where(x == 0, x + y, x)
    return where(x == y, same, where((x > y) | (x != x), x, y))


@formula("minimum", exact=True)
def minimum(x: SOp, y: SOp) -> SOp:
    """Return the smaller of x and y, NaN if x or y is NaN, and −0 for the operands 0 and −0."""
    if _is_usual(y):
        return where(x > y, y, x)
    same = where(x == 0, -(-x - y), x)
    return where(x == y, same, where((x < y) | (x != x), x, y))


def _is_usual(x: SOp) -> bool:
    """Return whether ``x`` is a constant that is neither NaN nor −0."""
    if x.node.op != "constant":
        return False
    value: Any = x.node.attributes["value"]
    return bool(value == value and (value != 0 or math.copysign(1.0, value) > 0))


@formula("fmax", exact=True)
def fmax(x: SOp, y: SOp) -> SOp:
    """Return the larger of x and y. If one number is NaN, return the other number."""
    return where(y != y, x, where(x != x, y, maximum(x, y)))


@formula("fmin", exact=True)
def fmin(x: SOp, y: SOp) -> SOp:
    """Return the smaller of x and y. If one number is NaN, return the other number."""
    return where(y != y, x, where(x != x, y, minimum(x, y)))


@formula("clamp", "clamp.Tensor", "hardtanh", exact=True)
def clamp(x: SOp, least: SOp | None, greatest: SOp | None) -> SOp:
    """Return x limited to the range from the lower to the upper bound. The result is NaN if x or a
    bound is NaN, and the upper bound if the lower bound exceeds it.
    """
    above = x if least is None else maximum(x, least)
    return above if greatest is None else minimum(above, greatest)


# Comparisons and logic ------------------------------------------------------------------------------


def comparison(name: str, function: Formula) -> None:
    """Register the construction of the ATen comparison ``name``, such as ``eq``."""

    def construct(out: Layout, a: Any, b: Any) -> Tensor:
        """Return the result of comparing ``a`` and ``b`` in their common dtype."""
        return compute(out, function, a, b, dtype=common_type(a, b))

    operation("elementwise", f"{name}.Tensor", f"{name}.Scalar")(construct)


for _name, _function in {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}.items():
    comparison(_name, _function)


@operation("elementwise", "isnan")
def isnan(out: Layout, a: Tensor) -> Tensor:
    """Return whether each entry is NaN."""
    return compute(out, lambda x: x != x, a, dtype=a.dtype)


@operation("elementwise", "isinf")
def isinf(out: Layout, a: Tensor) -> Tensor:
    """Return whether each entry is infinite."""
    return compute(out, lambda x: abs(x) == math.inf, a, dtype=computing_type(a.dtype))


@formula("logical_and", dtype="bool")
def logical_and(x: SOp, y: SOp) -> SOp:
    """Return whether x and y are both non-zero."""
    return x & y


@formula("logical_or", dtype="bool")
def logical_or(x: SOp, y: SOp) -> SOp:
    """Return whether x or y is non-zero."""
    return x | y


@formula("logical_xor", dtype="bool")
def logical_xor(x: SOp, y: SOp) -> SOp:
    """Return whether exactly one of x and y is non-zero."""
    return (x | y) & ~(x & y)


@formula("logical_not", dtype="bool")
def logical_not(x: SOp) -> SOp:
    """Return whether x is 0."""
    return ~x


#: Number of bits of each integer dtype, without the sign bit. Float64 limits the number for 64 bits.
_BITS = {"uint8": 8, "int8": 7, "int16": 15, "int32": 31, "int64": 53, "uint64": 53}


def bitwise(name: str, function: Formula) -> None:
    """Register the construction of the operation ``bitwise_{name}`` on booleans and integers."""

    def construct(out: Layout, a: Any, b: Any) -> Tensor:
        if out.dtype == "bool":
            return compute(out, function, a, b)
        weights = [2**place for place in range(_BITS[out.dtype])]

        def of_integers(x: SOp, y: SOp) -> SOp:
            total = where(function(x < 0, y < 0), -2 * weights[-1], 0)
            for weight in weights:
                total += where(function(x // weight % 2 == 1, y // weight % 2 == 1), weight, 0)
            return total

        return compute(out, of_integers, a, b)

    construct.__doc__ = (
        f"Return the bitwise {name.upper()} of integers, or the logical {name.upper()} of booleans."
    )
    operation("elementwise", *(f"bitwise_{name}.{kind}" for kind in ("Tensor", "Scalar")))(construct)


for _name, _function in {"and": logical_and, "or": logical_or, "xor": logical_xor}.items():
    bitwise(_name, _function)


@operation("elementwise", "bitwise_not")
def bitwise_not(out: Layout, a: Tensor) -> Tensor:
    """Return the bitwise NOT of integers, or the logical NOT of booleans."""
    return compute(out, logical_not if out.dtype == "bool" else lambda x: -1 - x, a)


@operation(
    "elementwise",
    *("bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar"),
    *("__lshift__.Tensor", "__lshift__.Scalar"),
)
def shift_left(out: Layout, a: Any, b: Any) -> Tensor:
    """Return a · 2ᵇ, or 0 where ``b`` is negative or at least the number of bits of the dtype."""
    bits = 8 * getattr(torch, out.dtype).itemsize
    return compute(out, lambda x, y: where((y < 0) | (y >= bits), 0, x * 2 ** abs(y)), a, b)


@operation(
    "elementwise",
    *("bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar"),
    *("__rshift__.Tensor", "__rshift__.Scalar"),
)
def shift_right(out: Layout, a: Any, b: Any) -> Tensor:
    """Return a / 2ᵇ rounded down. Where ``b`` is negative or at least the number of bits of the dtype,
    return −1 for negative ``a`` and 0 otherwise.
    """
    bits = 8 * getattr(torch, out.dtype).itemsize
    sign: Formula = lambda x: where(x < 0, -1, 0)  # noqa: E731
    return compute(out, lambda x, y: where((y < 0) | (y >= bits), sign(x), x // 2 ** abs(y)), a, b)


@operation("elementwise", "where.self")
def where_(out: Layout, condition: Tensor, a: Any, b: Any) -> Tensor:
    """Return ``a`` where the condition is true, and ``b`` elsewhere."""
    holds = convert(out.read(condition), condition.dtype, "bool")
    return compute(out, lambda x, y: where(holds, x, y), a, b, dtype=out.dtype)
