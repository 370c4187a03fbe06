"""The way from a call in Python to a loop: a function of C that reads arrays where NumPy keeps them, and checks them.

It takes what `METH_FASTCALL` gives, refuses with a TypeError whatever the loop was not made for, lets other threads run
meanwhile, and costs about 0.1 us for ten arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]

from lab.kernels.arguments import Argument
from lab.kernels.native_frame import RAISED
from lab.kernels.native_values import BITS, INT, KINDS, Array, Number, stored

HEAD = 16
"""Bytes in front of each object of Python, the count of references and the type."""
DATA, NDIM, SHAPE, DTYPE, FLAGS = (HEAD + n for n in (0, 8, 16, 40, 48))
"""Where NumPy keeps what it knows of an array (PyArrayObject_fields, the same in NumPy 1 and 2)."""
ORDER, NUMBER = HEAD + 10, HEAD + 12
"""Where a dtype keeps its order of bytes and its number (PyArray_Descr)."""
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
BYTE, WORD, TRUTH, VOID = ir.IntType(8), ir.IntType(32), ir.IntType(1), ir.VoidType()
OBJECT = BYTE.as_pointer()
API: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "PyErr_SetString": (VOID, (OBJECT, OBJECT)), "PyErr_Occurred": (OBJECT, ()),
    "PyNumber_AsSsize_t": (INT, (OBJECT, OBJECT)), "PyLong_FromSsize_t": (OBJECT, (INT,)),
    "PyFloat_AsDouble": (ir.DoubleType(), (OBJECT,)), "PyObject_IsTrue": (WORD, (OBJECT,)),
    "PyEval_SaveThread": (OBJECT, ()), "PyEval_RestoreThread": (VOID, (OBJECT,)), "Py_IncRef": (VOID, (OBJECT,)),
    "PyType_IsSubtype": (WORD, (OBJECT, OBJECT)),
}  # fmt: skip
"""What is called of Python's own functions."""
ERRORS: tuple[type[Exception], ...] = (TypeError, OverflowError, *RAISED)
OBJECTS: dict[str, Any] = {"lab_ndarray": np.ndarray, "lab_None": None, **{f"lab_{e.__name__}": e for e in ERRORS}}
"""Names for the addresses of NumPy's type of arrays, of None and of classes of errors."""
MESSAGE = "a compiled loop was given an array of another dtype or order, or another number of arguments"


def numbers_of(dtype: str) -> tuple[int, int]:
    """The numbers that NumPy has for a dtype: two types of C may be 64-bit integers."""
    first = np.dtype(dtype).num
    twin = np.dtype(np.longlong)
    return first, twin.num if dtype == "int64" and twin.itemsize == 8 else first


class Wrapper:
    """Writes the functions around a loop into a module."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.api = {name: ir.Function(module, ir.FunctionType(*kind), name) for name, kind in API.items()}
        self.objects = {name: ir.GlobalVariable(module, BYTE, name) for name in OBJECTS}
        self.fits = self._fits()

    def _at(self, b: Any, of: Any, offset: int, kind: Any) -> Any:
        """What an object keeps at an offset."""
        where = b.gep(of, [ir.Constant(INT, offset)])
        return b.load(b.bitcast(where, kind.as_pointer()))

    def _fits(self) -> Any:
        """`fits(object, ndim, number, other number, flags)`: whether it is such an array."""
        kind = ir.FunctionType(TRUTH, [OBJECT, WORD, WORD, WORD, WORD])
        function = ir.Function(self.module, kind, "fits")
        function.linkage = "internal"
        x, ndim, number, other, flags = function.args
        b = ir.IRBuilder(function.append_basic_block())
        type_ = self._at(b, x, 8, OBJECT)
        with b.if_then(b.icmp_unsigned("!=", type_, self.objects["lab_ndarray"]), likely=False):
            sub = b.call(self.api["PyType_IsSubtype"], [type_, self.objects["lab_ndarray"]])
            with b.if_then(b.icmp_signed("==", sub, WORD(0))):
                b.ret(TRUTH(0))
        dtype = self._at(b, x, DTYPE, OBJECT)
        own = self._at(b, dtype, NUMBER, WORD)
        has = b.or_(b.icmp_signed("==", own, number), b.icmp_signed("==", own, other))
        has = b.and_(has, b.icmp_signed("!=", self._at(b, dtype, ORDER, BYTE), BYTE(ord(">"))))
        has = b.and_(has, b.icmp_signed("==", self._at(b, x, NDIM, WORD), ndim))
        set_ = b.and_(self._at(b, x, FLAGS, WORD), flags)
        b.ret(b.and_(has, b.icmp_signed("==", set_, flags)))
        return function

    def around(
        self, loop: Any, arguments: Sequence[Argument], name: str, errors: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Write the function `name`, which calls `loop` with the data and the sizes of each array, and the numbers.

        Args:
            errors: name of the class and text of what the loop may raise.
        """
        kind = ir.FunctionType(OBJECT, [OBJECT, OBJECT.as_pointer(), INT])
        function = ir.Function(self.module, kind, name)
        _, given, n = function.args
        b = ir.IRBuilder(function.append_basic_block())
        wrong, failed = function.append_basic_block("wrong"), function.append_basic_block("failed")
        self._go_on(b, b.icmp_signed("==", n, INT(len(arguments))), wrong)
        trouble = b.alloca(INT)
        b.store(INT(0), trouble)
        values: list[Any] = [trouble]
        for i, argument in enumerate(arguments):
            x = b.load(b.gep(given, [INT(i)]))
            values += self._array(b, x, argument, wrong) if argument.ndim else self._number(b, x, argument, failed)
        state = b.call(self.api["PyEval_SaveThread"], [])
        result = b.call(loop, values)
        b.call(self.api["PyEval_RestoreThread"], [state])
        self._raise(b, trouble, errors, failed)
        if isinstance(result.type, ir.VoidType):
            b.call(self.api["Py_IncRef"], [self.objects["lab_None"]])
            b.ret(self.objects["lab_None"])
        else:
            b.ret(b.call(self.api["PyLong_FromSsize_t"], [result]))
        b.position_at_end(wrong)
        self._say(b, "TypeError", MESSAGE)
        b.branch(failed)
        b.position_at_end(failed)
        b.ret(ir.Constant(OBJECT, None))

    def _raise(self, b: Any, trouble: Any, errors: Sequence[tuple[str, str]], failed: Any) -> None:
        """Raise the error that the loop has noted, if any."""
        if not errors:
            return
        fine = b.append_basic_block()
        which = b.switch(b.load(trouble), fine)
        for i, (kind, text) in enumerate(errors):
            block = b.append_basic_block()
            which.add_case(INT(i + 1), block)
            b.position_at_end(block)
            self._say(b, kind, text)
            b.branch(failed)
        b.position_at_end(fine)

    def _say(self, b: Any, kind: str, text: str) -> None:
        """Set an error of Python's."""
        raw = bytearray(text.encode() + b"\0")
        data = ir.Constant(ir.ArrayType(BYTE, len(raw)), raw)
        message = ir.GlobalVariable(self.module, data.type, self.module.get_unique_name("message"))
        message.linkage, message.global_constant, message.initializer = "internal", True, data
        b.call(self.api["PyErr_SetString"], [self.objects[f"lab_{kind}"], b.bitcast(message, OBJECT)])

    def _go_on(self, b: Any, test: Any, otherwise: Any) -> None:
        there = b.append_basic_block()
        b.cbranch(test, there, otherwise)
        b.position_at_end(there)

    def _array(self, b: Any, x: Any, argument: Argument, wrong: Any) -> list[Any]:
        flags = CONTIGUOUS | ALIGNED | (WRITEABLE if argument.written else 0)
        first, other = numbers_of(argument.dtype)
        fits = b.call(self.fits, [x, WORD(argument.ndim), WORD(first), WORD(other), WORD(flags)])
        self._go_on(b, fits, wrong)
        data = self._at(b, x, DATA, stored(KINDS[argument.dtype]).as_pointer())
        shape = self._at(b, x, SHAPE, INT.as_pointer())
        return [data, *(b.load(b.gep(shape, [INT(axis)])) for axis in range(argument.ndim))]

    def _number(self, b: Any, x: Any, argument: Argument, failed: Any) -> list[Any]:
        """A number of Python's as one of the machine's."""
        if argument.dtype == "bool":
            truth = b.call(self.api["PyObject_IsTrue"], [x])
            self._go_on(b, b.icmp_signed(">=", truth, WORD(0)), failed)
            return [b.icmp_signed("!=", truth, WORD(0))]
        is_float = argument.dtype == "float64"
        if is_float:
            n = b.call(self.api["PyFloat_AsDouble"], [x])
        else:
            n = b.call(self.api["PyNumber_AsSsize_t"], [x, self.objects["lab_OverflowError"]])
        odd = b.fcmp_ordered("==", n, ir.Constant(n.type, -1.0)) if is_float else b.icmp_signed("==", n, INT(-1))
        with b.if_then(odd, likely=False):
            error = b.call(self.api["PyErr_Occurred"], [])
            self._go_on(b, b.icmp_unsigned("==", error, ir.Constant(OBJECT, None)), failed)
        return [n]


def loop_of(
    module: Any, arguments: Sequence[Argument], *, returns: bool, apart: bool
) -> tuple[Any, Any, list[Array | Number]]:
    """An empty function for a loop; where it notes that something went wrong; its arguments as the loop knows them."""
    types: list[Any] = [INT.as_pointer()]
    for a in arguments:
        types += [stored(KINDS[a.dtype]).as_pointer(), *[INT] * a.ndim] if a.ndim else [BITS[KINDS[a.dtype]]]
    function = ir.Function(module, ir.FunctionType(INT if returns else VOID, types), "loop")
    function.linkage = "internal"
    function.attributes.add("noinline")
    function.attributes.add("nounwind")
    given = iter(function.args)
    trouble = next(given)
    trouble.add_attribute("noalias")
    values: list[Array | Number] = []
    for a in arguments:
        first = next(given)
        if a.ndim:
            if apart:
                first.add_attribute("noalias")
            values.append(Array(KINDS[a.dtype], first, tuple(next(given) for _ in range(a.ndim))))
        else:
            values.append(Number(KINDS[a.dtype], first))
    return function, trouble, values
