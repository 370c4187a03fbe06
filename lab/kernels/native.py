"""Loops compiled without numba: written as LLVM, made into machine code, kept on disk and called as functions of C.

`import numba` and its tables of types take most of a second, and its inference seconds for a loop whose types are known
from the start. This needs llvmlite alone, which numba brings. Whatever is not as expected here (another Python, another
layout of NumPy's arrays, a loop that `native_lowering.py` does not know) is left to numba.
"""

from __future__ import annotations

import ast
import ctypes
import hashlib
import json
import logging
import os
import platform
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from llvmlite import binding as llvm  # type: ignore[import-untyped]

from lab.errors import KernelError
from lab.kernels import cache as files
from lab.kernels.arguments import Argument
from lab.kernels.native_layout import addresses, fits_this_python

LOG = logging.getLogger("lab.kernels")
FASTCALL = 0x80
_lock = threading.RLock()


class _Method(ctypes.Structure):
    """PyMethodDef of Python's C interface."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


class _Machine:
    """This processor for LLVM, and the engine that holds the code."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        # The same two settings as numba's: an image for many machines is warmed with NUMBA_CPU_NAME=generic.
        self.cpu = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
        own = "" if self.cpu == "generic" else llvm.get_host_cpu_features().flatten()
        self.features = os.environ.get("NUMBA_CPU_FEATURES", own)
        target = llvm.Target.from_default_triple()
        self.triple = target.triple
        reloc = "static" if target.name.startswith("x86") else "default"
        self.machine = target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=3, reloc=reloc, codemodel="jitdefault", jit=True
        )
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self.machine)
        for name, address in addresses().items():
            llvm.add_symbol(name, address)

    def code(self, text: str) -> bytes:
        """The object file of a module."""
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = self.triple, str(self.machine.target_data)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization, options.slp_vectorization = True, False
        passes = llvm.create_pass_builder(self.machine, options)
        passes.getModulePassManager().run(module, passes)
        return bytes(self.machine.emit_object(module))


def machine() -> _Machine | None:
    """This processor, or None where loops are left to numba."""
    with _lock:  # two at first use would make two, and the one that is kept by nobody takes its code with it
        return _machine()


@cache
def _machine() -> _Machine | None:
    if not fits_this_python():
        return None
    try:
        made = _Machine()
    except (RuntimeError, AttributeError, TypeError) as why:  # an llvmlite of other ways
        LOG.info("loops are compiled by numba: %s", why)
        return None
    _keep_for_ever(made.engine)  # threads may be in its code when the process ends
    return made


def compiled(
    name: str,
    source: str,
    scope: Mapping[str, Any],
    arguments: tuple[Argument, ...],
    *,
    apart: bool,
    flags: Iterable[str] = (),
) -> tuple[Callable[..., Any], str] | None:
    r"""The function `fused` of a source as machine code, and "loaded" if it came from the cache, else "compiled".

    Args:
        name: of the function, and the beginning of its file's.
        source: of the loop, in the Python that `native_lowering.py` knows.
        scope: what its names mean.
        arguments: what it takes.
        apart: the caller promises that no array overlaps one that is written.
        flags: what LLVM may do with its sums and products.

    Returns:
        None where numba has to compile it.

    Example:
        >>> import numpy as np
        >>> source = "def fused(x, n):\n    for i in range(n):\n        x[i] = x[i] + f8(1.0)"
        >>> made = compiled("plus_one", source, {"f8": np.float64}, (Argument("x", "float64", 1, True),
        ...     Argument("n", "int64", 0, False)), apart=True)
        >>> x = np.zeros(3)
        >>> made[0](x, 3)
        >>> x
        array([1., 1., 1.])
    """
    here = machine()
    if here is None:
        return None
    flags = tuple(sorted(flags))
    about = repr((name, source, arguments, apart, flags, here.triple, here.cpu, here.features, platform.machine()))
    digest = hashlib.sha256(about.encode()).hexdigest()[:24]
    file, symbol = f"{name}-{digest}.obj", f"lab_{digest}"
    with _lock:
        code, how = _from_cache(file, digest), "loaded"
        if code is None:
            try:
                code, how = here.code(_text(symbol, source, scope, arguments, apart, flags)), "compiled"
            except (KernelError, RuntimeError) as why:  # not known, or LLVM found it wrong
                LOG.info("%s is compiled by numba: %s", name, why)
                return None
            files.save(file, _head(digest, code) + code)
        return _function(here, symbol, name, code), how


def _head(digest: str, code: bytes) -> bytes:
    return json.dumps({"for": digest, "bytes": len(code)}).encode() + b"\n"


def _from_cache(file: str, digest: str) -> bytes | None:
    payload = files.load(file)
    if payload is None:
        return None
    code = payload.partition(b"\n")[2]
    if payload == _head(digest, code) + code:
        return code
    files.drop(file, "it is no code for this loop")
    return None


def _text(
    symbol: str, source: str, scope: Mapping[str, Any], arguments: tuple[Argument, ...], apart: bool,
    flags: tuple[str, ...],
) -> str:  # fmt: skip
    """The module of a loop as text."""
    from llvmlite import ir

    from lab.kernels.native_frame import Frame
    from lab.kernels.native_lowering import lowered
    from lab.kernels.native_wrapper import Wrapper, loop_of

    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.FunctionDef)
    module = ir.Module(name=symbol)
    returns = isinstance(tree.body[-1], ast.Return)
    loop, trouble, values = loop_of(module, arguments, returns=returns, apart=apart)
    builder = ir.IRBuilder(loop.append_basic_block())
    frame = Frame(builder, trouble)
    lowered(builder, tree, scope, flags, frame, values)
    Wrapper(module).around(loop, arguments, symbol, frame.errors)
    return str(module)


def _keep_for_ever(x: Any) -> None:
    """Have an object never be freed: at its end Python clears modules one by one, and frees functions after that."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))


def _function(here: _Machine, symbol: str, name: str, code: bytes) -> Callable[..., Any]:
    here.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    here.engine.finalize_object()
    address = here.engine.get_function_address(symbol)
    method = _Method(name.encode(), address, FASTCALL, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    _keep_for_ever(method)
    function: Callable[..., Any] = make(ctypes.addressof(method), None, None)
    return function
