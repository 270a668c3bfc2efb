"""Linking of a law's object file into this process, by LLVM's own linker."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm


@dataclass(frozen=True, kw_only=True)
class Linked:
    """C functions in memory, for as long as `owner` is there."""

    address: dict[str, int]  # by event
    owner: Any


def entry_symbol(event: str) -> str:
    """Return the name of a handler's C function in an object file."""
    return f"fabrictune_law_{event}"


def link(object_file: bytes, events: Sequence[str]) -> Linked:
    """Return the entries of these events."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(codemodel="jitdefault")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(object_file))
    engine.finalize_object()
    return Linked(address={event: engine.get_function_address(entry_symbol(event)) for event in events}, owner=engine)
