"""The keys of a scenario file, derived from the spec dataclasses of the rooms they configure.

A setting is defined once, as a field of a frozen dataclass in its own room: `link_rate_bps: int`. Here the field
becomes the key `link_rate`, whose value is text with a unit (`400 Gbps`), and the dataclass becomes a pydantic model
that checks a mapping of such keys and reports every mistake in it, not the first. Nested specs become nested mappings,
`tuple[...]` a list, `Literal` the list of what is allowed, `Choice` a mapping of which one key names the spec.

| suffix of the field       | value in the file                     |
|---------------------------|---------------------------------------|
| `_bps`                    | rate: `400 Gbps`                      |
| `_bytes`                  | size: `9 MB`, `9 MiB`                 |
| `_ns`, `_ps`              | duration: `5 us`                      |
| `_mm`                     | length: `40 m`                        |
| `_fraction`               | share of one: `0.2`, `20 %`           |
| `_packets`, or none       | as the type says: number, text, truth |
"""

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    create_model,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from foundation.errors import FabrictuneError, Mistake, UnitError
from foundation.units import (
    format_bytes,
    format_duration,
    format_rate,
    parse_bytes,
    parse_duration_ps,
    parse_fraction,
    parse_length_mm,
    parse_rate_bps,
)

Spec = TypeVar("Spec")


def parse_duration_ns(text: str) -> int:
    """Return nanoseconds for text such as `"5 us"`; raises UnitError."""
    duration_ps = parse_duration_ps(text)
    if duration_ps % 1000:
        raise UnitError(Mistake(where="", found=f"{text!r}: no whole number of ns", allowed="whole nanoseconds"))
    return duration_ps // 1000


QUANTITIES: Mapping[str, Callable[[str], float]] = {
    "_bps": parse_rate_bps,
    "_bytes": parse_bytes,
    "_ns": parse_duration_ns,
    "_ps": parse_duration_ps,
    "_mm": parse_length_mm,
    "_fraction": parse_fraction,
}
SHOWN: Mapping[str, Callable[[float], str]] = {
    "_bps": format_rate,
    "_bytes": format_bytes,
    "_ns": lambda value: format_duration(value * 1000),
    "_ps": format_duration,
}
SUFFIXES = (*QUANTITIES, "_packets")
IMPLIED_CHOICE = "file"
NOT_A_KEY: Mapping[str, Any] = types.MappingProxyType({"file": False})  # metadata of a field that no file sets


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which of several specs a mapping chose, and the spec it filled."""

    name: str
    spec: Any


@dataclass(frozen=True)
class Choice:
    """Annotation of a field that takes one of several specs: the value of `key` names which.

    A mapping without `key` that has the key `file` chooses the spec named `file`. `from_text`, where given, turns a
    plain text into such a mapping.
    """

    key: str
    specs: Mapping[str, type]
    from_text: Callable[[str], dict[str, Any]] | None = None

    def read(self, value: object, info: ValidationInfo) -> Chosen:
        """Return what `value` chose; raises PydanticCustomError or ValidationError."""
        if isinstance(value, str) and self.from_text:
            value = self.from_text(value)
        if not isinstance(value, Mapping):
            refuse("mapping", f"a mapping with the key {self.key!r} is needed")
        if self.key in value:
            name = value[self.key]
        elif IMPLIED_CHOICE in self.specs and IMPLIED_CHOICE in value:
            name = IMPLIED_CHOICE
        else:
            refuse("no_choice", "", key=self.key, allowed=list(self.specs))
        if not isinstance(name, str) or name not in self.specs:
            refuse_at(self.key, name, "unknown_choice", allowed=list(self.specs))
        rest = {key: entry for key, entry in value.items() if key != self.key}
        return Chosen(name=name, spec=_bind(self.specs[name], rest, info))


def bind(spec: type[Spec], value: object, *, folder: Path) -> Spec:
    """Return the `spec` that a mapping of keys describes; names of files in it are relative to `folder`.

    Raises pydantic's ValidationError with every mistake.
    """
    model = _model_of(spec).model_validate(value, context=folder)  # type: ignore[arg-type]  # a class is hashable
    given = {name: getattr(model, name) for name in model.model_fields_set}
    try:
        return spec(**given)
    except FabrictuneError as error:
        raise ValidationError.from_exception_data(
            spec.__name__, [_broken_rule(spec, mistake, given) for mistake in error.mistakes]
        ) from error


def key_of(field_name: str) -> str:
    """Return the key a field has in a file: its name without the unit."""
    for suffix in SUFFIXES:
        if field_name.endswith(suffix):
            return field_name.removesuffix(suffix)
    return field_name


def keys_named(spec: type, mistake: Mistake) -> tuple[str, ...]:
    """Return the keys that lead from a spec to what a mistake names, () if it names nothing of the spec's.

    A room names the field, the key, or either behind its own name: `kmin_bytes`, `kmin`, `ecn.kmin`.
    """
    keys = [key_of(field.name) for field in dataclasses.fields(spec)]
    path = tuple(key_of(part) for part in mistake.where.split("."))
    while path and path[0] not in keys:
        path = path[1:]
    return path


def show_quantity(field_name: str, value: float) -> str:
    """Return a field's value for people, as a file would write it."""
    for suffix, show in SHOWN.items():
        if field_name.endswith(suffix):
            return show(value)
    return f"{value:g}"


def refuse(kind: str, message: str, **context: Any) -> NoReturn:
    """Refuse the value in hand; the context tells the reader what would do."""
    raise PydanticCustomError(kind, "{message}", {"message": message, **context})


def refuse_at(key: str, value: object, kind: str, **context: Any) -> NoReturn:
    """Refuse the value of one key of the mapping in hand."""
    error = PydanticCustomError(kind, "{message}", {"message": "", **context})
    raise ValidationError.from_exception_data(kind, [InitErrorDetails(type=error, loc=(key,), input=value)])


def _bind(spec: Any, value: object, info: ValidationInfo) -> Any:
    assert isinstance(info.context, Path), "the folder of the file"
    return bind(spec, value, folder=info.context)


@cache
def _model_of(spec: type) -> type[BaseModel]:
    hints = get_type_hints(spec, include_extras=True)
    settings = [field for field in dataclasses.fields(spec) if field.metadata != NOT_A_KEY]
    keys = [key_of(field.name) for field in settings]
    assert len(set(keys)) == len(keys), f"{spec.__name__}: two fields with one key"

    class Keys(BaseModel):
        """A mapping in which every key not known is a mistake that lists those that are."""

        model_config = ConfigDict(extra="allow", strict=True, protected_namespaces=())
        __pydantic_extra__: dict[str, Annotated[Any, PlainValidator(partial(_refuse_unknown, keys))]]

    fields: dict[str, Any] = {
        field.name: (_annotation(field.name, hints[field.name]), Field(... if _is_required(field) else None, alias=key))
        for field, key in zip(settings, keys, strict=True)
    }
    return create_model(spec.__name__, __base__=Keys, **fields)


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _refuse_unknown(keys: Sequence[str], value: object) -> NoReturn:
    refuse("unknown_key", "", allowed=list(keys))


def _annotation(name: str, hint: Any) -> Any:
    """Return the pydantic annotation for a field of that name and type."""
    choice = next((entry for entry in getattr(hint, "__metadata__", ()) if isinstance(entry, Choice)), None)
    if choice:
        return Annotated[Any, PlainValidator(choice.read)]
    if get_origin(hint) in (Union, types.UnionType):
        inner = [entry for entry in get_args(hint) if entry is not types.NoneType]
        assert len(inner) == 1, f"{name}: a setting has one type, or one and None"
        return _annotation(name, inner[0]) | None
    if get_origin(hint) is tuple:
        element = _annotation(name, get_args(hint)[0])
        return Annotated[types.GenericAlias(tuple, (element, ...)), BeforeValidator(_list_to_tuple)]
    if dataclasses.is_dataclass(hint):
        return Annotated[Any, PlainValidator(partial(_bind, hint))]
    if hint is Path:
        return Annotated[Any, PlainValidator(_path)]
    quantity = next((QUANTITIES[suffix] for suffix in QUANTITIES if name.endswith(suffix)), None)
    return Annotated[Any, PlainValidator(partial(_quantity, quantity, hint))] if quantity else hint


def _quantity(parse: Callable[[str], float], kind: type, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        refuse("quantity_type", "a number with its unit is needed")
    try:
        parsed: float = kind(parse(str(value)))
    except UnitError as error:
        refuse("mistake", str(error), mistake=error.mistakes[0])
    return parsed


def _list_to_tuple(value: object) -> tuple[Any, ...]:
    if not isinstance(value, list):
        refuse("list", "a list is needed")
    return tuple(value)


def _path(value: object, info: ValidationInfo) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        refuse("path", "the name of a file is needed")
    assert isinstance(info.context, Path), "the folder of the file"
    return info.context / value


def _broken_rule(spec: type, mistake: Mistake, given: Mapping[str, Any]) -> InitErrorDetails:
    """Return a rule that the spec itself checks as an error at the key of the field that the mistake names."""
    error = PydanticCustomError("mistake", "{message}", {"message": str(mistake), "mistake": mistake})
    return InitErrorDetails(type=error, loc=keys_named(spec, mistake), input=given)
