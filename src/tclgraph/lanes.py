"""Short vectors of numbers for compiled kernels: a row of a matrix, or a value for every head.

Compilers often fail to turn loops over small arrays into vector instructions, because they cannot
rule out that the arrays overlap. A kernel that uses `Lanes` is explicit: the operations
below apply to all numbers of a vector at once, and the compiler keeps the vector in registers. They
exist in compiled code only. A count of lanes must be a constant there.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, overload, register_model
from numba.np.arrayobj import make_array

# Sums may be reordered, but NaN and infinity must be handled correctly.
_FLAGS = ("contract", "arcp", "nsz", "reassoc")
_code: Any = cgutils  # these two have no types
_make_array: Any = make_array
_INT8, _INT32 = ir.IntType(8), ir.IntType(32)


def divisor_up_to(limit: int, number: int) -> int:
    """Return the largest divisor of a number that does not exceed a limit, at least 1.

    >>> divisor_up_to(64, 96), divisor_up_to(4, 7)
    (48, 1)
    """
    return next(size for size in range(max(limit, 1), 0, -1) if number % size == 0)


class Lanes(types.Type):
    """Type of a vector of `count` numbers."""

    def __init__(self, dtype: Any, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(name=f"Lanes({dtype}, {count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        number = ir.FloatType() if lanes.dtype == types.float32 else ir.DoubleType()
        vector = ir.VectorType(number, lanes.count)
        super().__init__(manager, lanes, vector)  # type: ignore[no-untyped-call]


# Declared here because numba's own type forbids calls in kernels, which omit the first argument.
_in_kernels: Callable[[Callable[..., Any]], Callable[..., Any]] = intrinsic(prefer_literal=True)

# The functions below run when a kernel is compiled: each returns a signature and a function that
# emits instructions.


@_in_kernels
def load(_: Any, array: Any, row: Any, column: Any, count: Any) -> Any:
    """Return `count` adjacent numbers of a row, from a column on."""
    lanes = Lanes(array.dtype, count.literal_value)

    def emit(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        place = _place(context, builder, array, arguments, context.get_value_type(lanes))
        return builder.load(place, align=array.dtype.bitwidth // 8)

    return lanes(array, row, column, count), emit


@_in_kernels
def load_column(_: Any, array: Any, row: Any, column: Any, count: Any) -> Any:
    """Return the numbers of `count` adjacent rows in a column."""
    lanes = Lanes(array.dtype, count.literal_value)

    def emit(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        vector = ir.Constant(context.get_value_type(lanes), ir.Undefined)
        matrix, first, column, _count = arguments
        for lane in range(lanes.count):
            place = [matrix, builder.add(first, first.type(lane)), column]
            number = builder.load(_place(context, builder, array, place, vector.type.element))
            vector = builder.insert_element(vector, number, _INT32(lane))
        return vector

    return lanes(array, row, column, count), emit


@_in_kernels
def load_rows(_: Any, array: Any, row: Any, column: Any, rows: Any, count: Any) -> Any:
    """Return `count` adjacent numbers of several adjacent rows, one row after the other."""
    lanes = Lanes(array.dtype, rows.literal_value * count.literal_value)

    def emit(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        places = _row_places(context, builder, array, arguments[:3], lanes, rows.literal_value)
        parts = [builder.load(place, align=array.dtype.bitwidth // 8) for place in places]
        while len(parts) > 1:
            parts = [
                _joined(builder, first, second)
                for first, second in zip(parts[0::2], parts[1::2], strict=True)
            ]
        return parts[0]

    return lanes(array, row, column, rows, count), emit


@_in_kernels
def store_rows(_: Any, array: Any, row: Any, column: Any, rows: Any, lanes: Any) -> Any:
    """Write a vector to several adjacent rows, an equal part of it to each, from a column on."""

    def emit(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        places = _row_places(context, builder, array, arguments[:3], lanes, rows.literal_value)
        count = lanes.count // len(places)
        for start, place in zip(range(0, lanes.count, count), places, strict=True):
            part = _shuffled(builder, arguments[4], range(start, start + count))
            builder.store(part, place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, row, column, rows, lanes), emit


@_in_kernels
def prefetch(_: Any, array: Any, row: Any) -> Any:
    """Ask the processor to load the start of a row into its cache, without waiting for it."""

    def emit(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        columns = [context.get_constant(types.intp, 0)] * (array.ndim - 1)
        position = context.cast(builder, arguments[1], row, types.intp)
        place = _place(context, builder, array, [arguments[0], position, *columns], _INT8)
        kind = ir.FunctionType(ir.VoidType(), [place.type, _INT32, _INT32, _INT32])
        function = _code.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        for_reading, stays_in_cache, is_data = _INT32(0), _INT32(3), _INT32(1)
        builder.call(function, [place, for_reading, stays_in_cache, is_data])
        return context.get_dummy_value()

    return types.none(array, row), emit


@_in_kernels
def store(_: Any, array: Any, row: Any, column: Any, lanes: Any) -> Any:
    """Write a vector to a row, from a column on."""

    def emit(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        place = _place(context, builder, array, arguments, context.get_value_type(lanes))
        builder.store(arguments[3], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, row, column, lanes), emit


@_in_kernels
def fill(_: Any, number: Any, count: Any) -> Any:
    """Return a vector in which every number is the same."""
    lanes = Lanes(number, count.literal_value)

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return _filled(builder, arguments[0], lanes.count)

    return lanes(number, count), emit


@_in_kernels
def fold(_: Any, lanes: Any, count: Any) -> Any:
    """Split a vector into groups of `count` adjacent numbers, and add the groups."""
    size = count.literal_value

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        groups = [
            _shuffled(builder, arguments[0], range(start, start + size))
            for start in range(0, lanes.count, size)
        ]
        total = groups[0]
        for group in groups[1:]:
            total = builder.fadd(total, group, flags=_FLAGS)
        return total

    return Lanes(lanes.dtype, size)(lanes, count), emit


@_in_kernels
def total(_: Any, lanes: Any) -> Any:
    """Return the sum of all numbers of a vector."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        (vector,) = arguments
        number = vector.type.element
        bits = 32 if isinstance(number, ir.FloatType) else 64
        function = _code.get_or_insert_function(
            builder.module,
            ir.FunctionType(number, [number, vector.type]),
            f"llvm.vector.reduce.fadd.v{vector.type.count}f{bits}",
        )
        return builder.call(function, [number(-0.0), vector], fastmath=_FLAGS)

    return lanes.dtype(lanes), emit


@_in_kernels
def tile(_: Any, lanes: Any, count: Any) -> Any:
    """Return a vector of `count` numbers that repeats a shorter vector."""
    size = count.literal_value

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return _shuffled(builder, arguments[0], [lane % lanes.count for lane in range(size)])

    return Lanes(lanes.dtype, size)(lanes, count), emit


@_in_kernels
def repeat(_: Any, lanes: Any, times: Any) -> Any:
    """Return a vector that has every number several times in a row."""
    size = lanes.count * times.literal_value

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        numbers = [lane // times.literal_value for lane in range(size)]
        return _shuffled(builder, arguments[0], numbers)

    return Lanes(lanes.dtype, size)(lanes, times), emit


@_in_kernels
def outer(_: Any, first: Any, second: Any) -> Any:
    """Return the products of every number of a vector and all numbers of another vector."""
    size = first.count * second.count

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        repeated = _shuffled(builder, arguments[0], [lane // second.count for lane in range(size)])
        tiled = _shuffled(builder, arguments[1], [lane % second.count for lane in range(size)])
        return builder.fmul(repeated, tiled, flags=_FLAGS)

    return Lanes(first.dtype, size)(first, second), emit


@_in_kernels
def mask(_: Any, lanes: Any, flags: Any, row: Any, column: Any) -> Any:
    """Return a vector with 0 in place of the numbers whose flag, an element of a row, is False."""

    def emit(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        place = _place(context, builder, flags, arguments[1:], ir.VectorType(_INT8, lanes.count))
        flag = builder.load(place, align=1)
        is_set = builder.icmp_unsigned("!=", flag, ir.Constant(flag.type, None))
        return builder.select(is_set, arguments[0], ir.Constant(arguments[0].type, None))

    return lanes(lanes, flags, row, column), emit


@_in_kernels
def maximum(_: Any, first: Any, second: Any) -> Any:
    """Return the larger number in every lane."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return _larger(builder, *arguments)

    return first(first, second), emit


@_in_kernels
def exp(_: Any, lanes: Any) -> Any:
    """Return the exponential; single-precision numbers must not be positive.

    In single precision it is a polynomial that is exact to one unit in the last place, because the
    library function cannot be vectorized and would take most of a kernel's time.
    """

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        if lanes.dtype == types.float64:
            return _library_function(builder, "exp", arguments[0])
        return _emit_single_exp(builder, arguments[0])

    return lanes(lanes), emit


@_in_kernels
def sqrt(_: Any, lanes: Any) -> Any:
    """Return the square root."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return _library_function(builder, "sqrt", arguments[0])

    return lanes(lanes), emit


def _operator(instruction: str) -> Callable[..., Any]:
    """Return an operator between two vectors, or between a vector and a number."""

    @_in_kernels
    def operate(_: Any, first: Any, second: Any) -> Any:
        lanes = first if isinstance(first, Lanes) else second

        def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
            operands = [
                argument if isinstance(kind, Lanes) else _filled(builder, argument, lanes.count)
                for kind, argument in zip((first, second), arguments, strict=True)
            ]
            return getattr(builder, instruction)(*operands, flags=_FLAGS)

        return lanes(first, second), emit

    def choose(first: Any, second: Any) -> Any:
        def compiled(first: Any, second: Any) -> Any:
            return operate(first, second)

        is_ours = isinstance(first, Lanes) or isinstance(second, Lanes)
        return compiled if is_ours else None

    return choose


overload(operator.add)(_operator("fadd"))
overload(operator.sub)(_operator("fsub"))
overload(operator.mul)(_operator("fmul"))
overload(operator.truediv)(_operator("fdiv"))


def _place(context: Any, builder: Any, array: Any, arguments: Any, vector: Any) -> Any:
    """Return the address of a vector in an array, given as array, row and column."""
    structure = _make_array(array)(context, builder, arguments[0])
    place = _code.get_item_pointer(
        context, builder, array, structure, list(arguments[1 : 1 + array.ndim]), wraparound=False
    )
    return builder.bitcast(place, vector.as_pointer())


def _row_places(
    context: Any, builder: Any, array: Any, arguments: Any, lanes: Any, rows: int
) -> list[Any]:
    """Return the addresses of the equal parts of a vector in adjacent rows of a matrix."""
    matrix, first, column = arguments
    part = context.get_value_type(Lanes(array.dtype, lanes.count // rows))
    places = [[matrix, builder.add(first, first.type(lane)), column] for lane in range(rows)]
    return [_place(context, builder, array, place, part) for place in places]


def _joined(builder: Any, first: Any, second: Any) -> Any:
    """Return a vector of the numbers of two vectors of the same size."""
    size = 2 * first.type.count
    mask = ir.Constant(ir.VectorType(_INT32, size), list(range(size)))
    return builder.shuffle_vector(first, second, mask)


def _filled(builder: Any, number: Any, count: int) -> Any:
    single = ir.Constant(ir.VectorType(number.type, 1), ir.Undefined)
    single = builder.insert_element(single, number, _INT32(0))
    return _shuffled(builder, single, [0] * count)


def _shuffled(builder: Any, vector: Any, lanes: Sequence[int]) -> Any:
    """Return a vector of some lanes of another vector."""
    mask = ir.Constant(ir.VectorType(_INT32, len(lanes)), list(lanes))
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


def _larger(builder: Any, first: Any, second: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", first, second), first, second)


def _library_function(builder: Any, name: str, vector: Any) -> Any:
    bits = 32 if isinstance(vector.type.element, ir.FloatType) else 64
    function = _code.get_or_insert_function(
        builder.module,
        ir.FunctionType(vector.type, [vector.type]),
        f"llvm.{name}.v{vector.type.count}f{bits}",
    )
    return builder.call(function, [vector])


def _emit_single_exp(builder: Any, vector: Any) -> Any:
    """Compute 2^power · e^rest; the exponent bits of a float hold the power."""
    count = vector.type.count

    def constant(number: float) -> Any:
        return ir.Constant(vector.type, [number] * count)

    def multiply_add(first: Any, second: Any, third: Any) -> Any:
        return builder.fadd(builder.fmul(first, second, flags=_FLAGS), third, flags=_FLAGS)

    bounded = _larger(builder, vector, constant(-87.0))
    power = multiply_add(bounded, constant(1.44269504), constant(0.5))
    power = _library_function(builder, "floor", power)
    # ln 2 is split into two parts, so that the remainder keeps all its digits.
    rest = multiply_add(power, constant(-0.693359375), bounded)
    rest = multiply_add(power, constant(2.12194440e-4), rest)
    series = constant(1.9875691500e-4)
    for coefficient in (
        1.3981999507e-3,
        8.3334519073e-3,
        4.1665795894e-2,
        1.6666665459e-1,
        5.0000001201e-1,
    ):
        series = multiply_add(series, rest, constant(coefficient))
    series = multiply_add(builder.fmul(series, rest, flags=_FLAGS), rest, rest)
    series = builder.fadd(series, constant(1.0), flags=_FLAGS)
    integers = ir.VectorType(_INT32, count)
    bits = builder.add(builder.fptosi(power, integers), ir.Constant(integers, [127] * count))
    bits = builder.shl(bits, ir.Constant(integers, [23] * count))
    return builder.fmul(series, builder.bitcast(bits, vector.type), flags=_FLAGS)
