"""The keys of a settings file (scenario, recipe), derived from the spec dataclasses of the rooms they configure.

A setting is defined once, as a field of a frozen dataclass in its own room: `link_rate_bps: int`. Here the field
becomes the key `link_rate`, whose value is text with a unit (`400 Gbps`), and the dataclass becomes a pydantic model
that checks a mapping of such keys and reports every mistake in it, not the first. Nested specs become nested mappings,
`tuple[...]` a list, `Literal` the list of what is allowed, `Choice` a mapping of which one key names the spec.
`quantities` defines the suffixes of field names. A spec with `FROM_TEXT` may be a plain text, which that function turns
into a mapping; `known_as` in a field's metadata lists what others call its key.
"""

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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

from fabrictune.foundation.errors import ExtensionError, FabrictuneError, Mistake, UnitError, nearest_name
from fabrictune.foundation.extensions.kinds import Extension, is_path
from fabrictune.foundation.extensions.tables import extensible
from fabrictune.foundation.settings.quantities import Quantity, key_of, quantity_of

Spec = TypeVar("Spec")

IMPLIED_CHOICE = "file"
PRESET = "preset"  # key of a choice whose values a known spec fills in
NOT_A_KEY: Mapping[str, Any] = types.MappingProxyType({"file": False})  # metadata of a field that no file sets


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The spec that a mapping chose of several, and the values it filled."""

    name: str
    spec: Any
    extension: Extension[Any] | None = None  # the file of the user's that has the spec


@dataclass(frozen=True, kw_only=True)
class FileSettings:
    """Settings for an extension in a file. Their keys are known, and checked, once the file has been loaded."""

    file: Path
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Choice:
    """Annotation of a field that takes one of several specs: the value of `key` names which.

    A mapping without `key` that has the key `file` chooses the spec named `file`, any other one `default`, where there
    is one. `from_text`, where given, turns a plain text into such a mapping. Where it `takes_files`, the value of `key`
    may be a Python file, whose settings are those of the mapping. `known_as` leads from names that others
    use to those of the specs, for the guess of a mistake.
    """

    key: str
    specs: Mapping[str, type]
    from_text: Callable[[str], dict[str, Any]] | None = None
    default: str | None = None
    takes_files: bool = False
    known_as: Mapping[str, str] = field(default_factory=dict)

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
        elif self.default is not None:
            name = self.default
        else:
            self._refuse_without_key(value, info)
        if self.takes_files and isinstance(name, str) and is_path(name):
            settings = {key: entry for key, entry in value.items() if key != self.key}
            return Chosen(name=name, spec=FileSettings(file=_path(name, info), settings=settings))
        if not isinstance(name, str) or name not in self.specs:
            refuse_at(self.key, name, "unknown_choice", allowed=list(self.specs), known_as=self.known_as)
        rest = {key: entry for key, entry in value.items() if key != self.key}
        return Chosen(name=name, spec=_bind(self.specs[name], rest, info))

    def _refuse_without_key(self, value: Mapping[Any, Any], info: ValidationInfo) -> NoReturn:
        """Refuse a mapping that lacks `key`; where a key like it names a spec, with the mistakes in that one's keys."""
        misspelt = nearest_name(self.key, [key for key in value if isinstance(key, str)])
        name = value.get(misspelt)
        if not isinstance(name, str) or name not in self.specs:
            refuse("no_choice", "", key=self.key, allowed=list(self.specs))
        error = PydanticCustomError("unknown_key", "{message}", {"message": "", "allowed": [self.key]})
        errors: list[InitErrorDetails] = [InitErrorDetails(type=error, loc=(misspelt,), input=name)]
        try:
            _bind(self.specs[name], {key: entry for key, entry in value.items() if key != misspelt}, info)
        except ValidationError as others:
            errors += [_again(detail) for detail in others.errors(include_url=False)]
        raise ValidationError.from_exception_data(self.key, errors)


@dataclass(frozen=True)
class SpecChoice(Choice):
    """A choice of which the field holds the spec itself.

    The key `preset` names one of `presets`: it chooses that one's spec, and fills in the keys that the mapping lacks.
    """

    presets: Mapping[str, Any] = field(default_factory=dict)

    def read(self, value: object, info: ValidationInfo) -> Any:
        """Return the spec that `value` chose; raises PydanticCustomError or ValidationError."""
        if not isinstance(value, Mapping):
            return super().read(value, info).spec
        rest = {key: entry for key, entry in value.items() if key != PRESET}
        try:
            return super().read({**self._filled_in(value.get(PRESET), rest, info), **rest}, info).spec
        except ValidationError as error:
            raise ValidationError.from_exception_data(self.key, self._errors(error)) from None

    def _filled_in(self, name: object, rest: Mapping[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """Return the keys of the preset of that name, none where there is no name."""
        if name is None:
            return {}
        if not isinstance(name, str) or name not in self.presets:
            self._refuse_preset(name, rest, info)
        preset = self.presets[name]
        family = next(family for family, spec in self.specs.items() if type(preset) is spec)
        found = rest.get(self.key, family)
        if found != family:
            mistake = Mistake(
                where=self.key,
                found=repr(found),
                allowed=f"{family}, which the preset {name!r} is of",
                next_step=f"leave out {self.key!r}, or {PRESET!r}",
            )
            refuse_at(self.key, found, "mistake", mistake=mistake)
        keys = {key_of(field.name): getattr(preset, field.name) for field, _ in settings_of(self.specs[family])}
        return {self.key: family, **keys}

    def _refuse_preset(self, name: object, rest: Mapping[str, Any], info: ValidationInfo) -> NoReturn:
        """Refuse an unknown preset, with the mistakes in the other keys."""
        context = {"message": "", "allowed": list(self.presets)}
        error = PydanticCustomError("unknown_choice", "{message}", context)
        errors: list[InitErrorDetails] = [InitErrorDetails(type=error, loc=(PRESET,), input=name)]
        try:
            super().read(rest, info)
        except ValidationError as others:
            errors += self._errors(others)
        raise ValidationError.from_exception_data(PRESET, errors)

    def _errors(self, error: ValidationError) -> list[InitErrorDetails]:
        """Return the errors, with the keys of the choice itself among those that an unknown key could have been."""
        details: list[Any] = error.errors(include_url=False)
        for detail in details:
            if detail["type"] == "unknown_key" and len(detail["loc"]) == 1:
                detail["ctx"]["allowed"] = [self.key, PRESET, *detail["ctx"]["allowed"]]
        return [_again(detail) for detail in details]


def bind(spec: type[Spec], value: object, *, folder: Path) -> Spec:
    """Return the `spec` that a mapping of keys describes; names of files in it are relative to `folder`.

    Raises pydantic's ValidationError with every mistake.
    """
    model = _model_of(spec).model_validate(value, context=folder)  # type: ignore[arg-type]  # a class is hashable
    given = {name: getattr(model, name) for name in model.model_fields_set}
    try:
        return spec(**given)
    except ExtensionError:
        raise
    except FabrictuneError as error:
        raise ValidationError.from_exception_data(
            spec.__name__, [_broken_rule(spec, mistake, given) for mistake in error.mistakes]
        ) from error


def settings_of(spec: Any) -> list[tuple["dataclasses.Field[Any]", Any]]:
    """Return the fields of a spec that are keys of a file, each with its type."""
    hints = get_type_hints(spec, include_extras=True)
    return [(field, hints[field.name]) for field in dataclasses.fields(spec) if field.metadata != NOT_A_KEY]


def choice_of(hint: Any) -> Choice | None:
    """Return the choice that a type is annotated with, if it is."""
    return next((entry for entry in getattr(hint, "__metadata__", ()) if isinstance(entry, Choice)), None)


def is_required(field: "dataclasses.Field[Any]") -> bool:
    """Return whether a file must have the field's key."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def keys_named(spec: type, mistake: Mistake) -> tuple[str, ...]:
    """Return the keys that lead from a spec to what a mistake names, () if it names nothing of the spec's.

    A room names the field, the key, or either behind its own name: `kmin_bytes`, `kmin`, `ecn.kmin`. A file may be
    called `placement.csv`: a key that holds a text or a file has no keys below it, and no path of keys a slash.
    """
    if "/" in mistake.where:
        return ()
    keys = [key_of(field.name) for field in dataclasses.fields(spec)]
    path = tuple(key_of(part) for part in mistake.where.split("."))
    while path and path[0] not in keys:
        path = path[1:]
    return () if len(path) > 1 and path[0] in _keys_of_texts(spec) else path


@cache
def _keys_of_texts(spec: type) -> frozenset[str]:
    """Return the keys of a spec that hold one text or the name of a file."""
    texts = {str, Path, types.NoneType}
    hints = {field.name: hint for field, hint in settings_of(spec)}
    plain = {name: get_args(hint)[0] if hasattr(hint, "__metadata__") else hint for name, hint in hints.items()}
    return frozenset(key_of(name) for name, hint in plain.items() if set(get_args(hint) or [hint]) <= texts)


def refuse(kind: str, message: str, **context: Any) -> NoReturn:
    """Refuse the value in hand; the context tells the reader what would do."""
    raise PydanticCustomError(kind, "{message}", {"message": message, **context})


def refuse_at(key: str, value: object, kind: str, **context: Any) -> NoReturn:
    """Refuse the value of one key of the mapping in hand."""
    error = PydanticCustomError(kind, "{message}", {"message": "", **context})
    raise ValidationError.from_exception_data(kind, [InitErrorDetails(type=error, loc=(key,), input=value)])


def _again(detail: Any) -> InitErrorDetails:
    """Return an error that pydantic reported, so that it can be raised with others."""
    context = {"message": detail["msg"], **detail.get("ctx", {})}
    error = PydanticCustomError(detail["type"], "{message}", context)
    return InitErrorDetails(type=error, loc=detail["loc"], input=detail["input"])


def _bind(spec: Any, value: object, info: ValidationInfo) -> Any:
    assert isinstance(info.context, Path), "the folder of the file"
    if isinstance(value, str) and (keys_of := getattr(spec, "FROM_TEXT", None)):
        value = keys_of(value)
    return bind(spec, value, folder=info.context)


@cache
def _model_of(spec: type) -> type[BaseModel]:
    settings = settings_of(spec)
    keys = [key_of(field.name) for field, _ in settings]
    known_as = {name: key_of(field.name) for field, _ in settings for name in field.metadata.get("known_as", ())}
    assert len(set(keys)) == len(keys), f"{spec.__name__}: two fields with one key"

    class Keys(BaseModel):
        """A mapping in which every key not known is a mistake that lists those that are."""

        model_config = ConfigDict(extra="allow", strict=True, protected_namespaces=())
        __pydantic_extra__: dict[str, Annotated[Any, PlainValidator(partial(_refuse_unknown, keys, known_as))]]

    fields: dict[str, Any] = {
        field.name: (
            _annotation(field.name, hint),
            Field(... if is_required(field) else None, alias=key_of(field.name)),
        )
        for field, hint in settings
    }
    return create_model(spec.__name__, __base__=Keys, **fields)


def _refuse_unknown(keys: Sequence[str], known_as: Mapping[str, str], value: object) -> NoReturn:
    refuse("unknown_key", "", allowed=list(keys), known_as=known_as)


def _annotation(name: str, hint: Any) -> Any:
    """Return the pydantic annotation for a field of that name and type."""
    if choice := choice_of(hint):
        return Annotated[Any, PlainValidator(choice.read)]
    if extensible(hint):
        return Annotated[Any, PlainValidator(_name_or_file)]
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
    quantity = quantity_of(name)
    return Annotated[Any, PlainValidator(partial(_quantity, quantity, hint))] if quantity else hint


def _quantity(quantity: Quantity, kind: type, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        refuse("quantity_type", "a number with its unit is needed")
    try:
        parsed: float = kind(quantity.parse(str(value)))
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


def _name_or_file(value: object, info: ValidationInfo) -> str | Path:
    """Return a name of a table as it is; the field's spec knows the names."""
    if not isinstance(value, str):
        refuse("string_type", "a name is needed")
    return _path(value, info) if is_path(value) else value


def _broken_rule(spec: type, mistake: Mistake, given: Mapping[str, Any]) -> InitErrorDetails:
    """Return a rule that the spec itself checks as an error at the key of the field that the mistake names."""
    error = PydanticCustomError("mistake", "{message}", {"message": str(mistake), "mistake": mistake})
    return InitErrorDetails(type=error, loc=keys_named(spec, mistake), input=given)
