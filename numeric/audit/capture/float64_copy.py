"""A float64 copy of a module that returns logits only, to compare them closely.

With logits only, float32 rounding hides a wrong ε; float64 does not. So a torch module, a method of
one, or a `functools.partial` of either is copied, its parameters and buffers are converted, and the
copy is run on the same tokens. Steps written out in float32 (`.float()` around a norm or a softmax)
run in float64 too, and rotary tables are recomputed from the configuration. What remains in lower
precision are numbers that were rounded earlier: rewritten weights, or other tables.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from otimes.numeric.audit.capture.modules import left_as_it_was, rebind_closures
from otimes.numeric.config import Config
from otimes.numeric.functions import rotary_frequencies, rotary_scale
from otimes.numeric.importers.unwrap import called, module_run_by, name_of

Call = Callable[[Any], Any]

DOUBLE = torch.float64
WRITTEN_OUT = {torch.float32: DOUBLE, torch.complex64: torch.complex128}
"""Dtypes that steps are cast to for precision; a step in half precision stays as it is."""
WIDER = {torch.float16: DOUBLE, torch.bfloat16: DOUBLE, **WRITTEN_OUT}


def types_of(module: torch.nn.Module) -> list[str]:
    """Return the dtypes of a module's parameters that are of lower precision than float64."""
    found = {each.dtype for each in module.parameters()}
    return [str(dtype).removeprefix("torch.") for dtype in found if WIDER.get(dtype) == DOUBLE]


def quiet(call: Call, module: torch.nn.Module) -> Call:
    """Return a callable that restores the state of the module after each call."""

    def run(tokens: Any) -> Any:
        with left_as_it_was(module):
            return call(tokens)

    run.__name__ = name_of(call)
    return run


def with_other_draws(call: Call, module: torch.nn.Module) -> tuple[Call, Call]:
    """Return two callables that draw other random numbers, if any are drawn."""

    def seeded(seed: int) -> Call:
        def run(tokens: Any) -> Any:
            with left_as_it_was(module):
                torch.manual_seed(seed)
                return call(tokens)

        run.__name__ = name_of(call)
        return run

    return seeded(1), seeded(2)


def widened(call: Call, module: torch.nn.Module, config: Config) -> Call:
    """Return a copy of a callable that computes in float64.

    `config` gives the angles of rotary embeddings, if there are any.
    Raises: OtimesError when the module cannot be copied; the copy, when it cannot run in float64.
    """
    converted = {id(each): _wide(each, config) for each in _tensors(module)}
    copy = called(deepcopy, call, converted)
    inside = module_run_by(copy)
    assert inside is not None  # a copy is of the kind of what is copied
    rebind_closures(inside, converted)
    converted.clear()

    def run(tokens: Any) -> Any:
        if isinstance(tokens, torch.Tensor) and tokens.is_floating_point():
            tokens = tokens.double()
        usual = torch.get_default_dtype()
        try:
            torch.set_default_dtype(DOUBLE)
            with left_as_it_was(inside), _Widening():
                return copy(tokens)
        finally:
            torch.set_default_dtype(usual)

    run.__name__ = f"the float64 copy of {name_of(call)}"
    return run


def _tensors(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Yield the parameters, buffers and tensor attributes of lower precision than float64."""
    for part in module.modules():
        for held in (part._parameters, part._buffers, vars(part)):
            for each in held.values():
                if isinstance(each, torch.Tensor) and each.dtype in WIDER:
                    yield each


def _wide(tensor: torch.Tensor, config: Config) -> torch.Tensor:
    wide = tensor.detach().to(WIDER[tensor.dtype])
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(wide, requires_grad=False)
    if config.positions == "rotary" and tensor.dtype in WRITTEN_OUT:
        return _rotary_table(wide, config)
    return wide


def _rotary_table(table: torch.Tensor, config: Config) -> torch.Tensor:
    """Return a table of rotary frequencies, cosines or sines as it was before rounding.

    It is recognised by agreement to float32; any other table is returned unchanged.
    """
    frequency = torch.from_numpy(
        rotary_frequencies(config.rotary_dims, config.rotary_base, config.rotary_stretch)
    ).to(table.device)
    flat = table.squeeze()
    if flat.ndim == 1:
        tables, off = [frequency], frequency
    elif flat.ndim == 2:
        angle = torch.arange(len(flat), device=table.device)[:, None] * frequency
        both = [angle, torch.cat([angle, angle], -1), angle.repeat_interleave(2, -1)]
        fit = [each for each in both if each.shape == flat.shape]
        turn = (torch.cos, torch.sin) if not flat.is_complex() else (_turn,)
        scale = rotary_scale(config.rotary_stretch)
        tables = [scale * made(each) for each in fit for made in turn]
        off = scale * (1 + fit[0]) if fit else angle
    else:
        return table
    for exact in tables:
        if exact.shape == flat.shape and bool(((exact - flat).abs() <= RECOGNISED * off).all()):
            return exact.reshape(table.shape)
    return table


RECOGNISED = 2.0**-20
"""Relative tolerance of a frequency or an angle in float32."""


def _turn(angle: torch.Tensor) -> torch.Tensor:
    return torch.polar(torch.ones_like(angle), angle)


class _Widening(TorchDispatchMode):
    """While it is active, tensors created or cast to float32 are float64."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run a torch operation in float64; in-place operations and views are left unchanged."""
        asked = {
            name: WRITTEN_OUT.get(each, each) if isinstance(each, torch.dtype) else each
            for name, each in (kwargs or {}).items()
        }
        schema = func._schema
        aliases = any(each.alias_info is not None for each in (*schema.arguments, *schema.returns))
        given = args if aliases else tree_map(_read_wide, args)
        return func(*given, **asked)


def _read_wide(each: Any) -> Any:
    if isinstance(each, torch.Tensor) and each.dtype in WRITTEN_OUT:
        return each.to(WRITTEN_OUT[each.dtype])
    return each
