"""Reading a model's `config.json`, which is somebody else's file: only what the count needs, and that strictly."""

from collections.abc import Mapping
from typing import Any

from service.errors import Fault, Unsatisfiable

_MOST = 10**8


class ModelConfig:
    """A config that is read key by key. What is wrong is gathered, and raised by `finish` all at once.

    A value that is wrong or lacking reads as 1, so that reading can go on to the next.
    """

    def __init__(self, body: Mapping[str, Any], at: str = "", faults: list[Fault] | None = None) -> None:
        """Take the object, and where it lies within the config."""
        self._body = body
        self._at = at
        self._faults: list[Fault] = [] if faults is None else faults

    def finish(self) -> None:
        """Raise what was found wrong.

        Raises:
            Unsatisfiable: With pointers from the config on.
        """
        if self._faults:
            raise Unsatisfiable(*self._faults)

    def fault(self, key: str, code: str, detail: str) -> None:
        """Note what is wrong with a key."""
        found = Fault(f"{self._at}/{key}", code, detail)
        if found not in self._faults:
            self._faults.append(found)

    def conflict(self, key: str, code: str, detail: str) -> None:
        """Note that values do not fit each other, which says something only if each of them could be read."""
        if not self._faults:
            self.fault(key, code, detail)

    def states(self, key: str) -> bool:
        """Return whether the key is there, with a value."""
        return self._body.get(key) is not None

    def is_null(self, key: str) -> bool:
        """Return whether the key is there, with null."""
        return key in self._body and self._body[key] is None

    def count(
        self, key: str, *, default: int | None = None, least: int = 1, most: int = _MOST, alias: str = ""
    ) -> int:
        """Return a whole number.

        Args:
            key: Its name.
            default: What its absence means where the family defines that; without it, it is demanded.
            least: The least that makes sense.
            most: The most that this service reads.
            alias: Another name that it goes by.
        """
        value = self._body.get(key)
        if value is None and alias:
            value = self._body.get(alias)
            key = alias if value is not None else key
        if value is None:
            if default is None:
                self.fault(key, "missing", f"The count needs {key}, which the config does not have.")
                return max(least, 1)
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int:
            self.fault(key, "not_a_count", f"{key} is a whole number.")
        elif not least <= value <= most:
            self.fault(key, "out_of_range", f"{key} lies between {least} and {most}.")
        else:
            return value
        return max(least, 1)

    def flag(self, key: str, *, default: bool | None = None) -> bool:
        """Return a boolean, or what its absence means where the family defines that; without it, it is demanded."""
        value = self._body.get(key)
        if value is None and default is not None:
            return default
        if value is None:
            self.fault(key, "missing", f"The count needs {key}, which the config does not have.")
        elif type(value) is not bool:
            self.fault(key, "not_a_flag", f"{key} is true or false.")
        else:
            return value
        return False

    def word(self, key: str) -> str:
        """Return a string; an empty one where there is none."""
        value = self._body.get(key)
        if value is None:
            return ""
        if type(value) is not str:
            self.fault(key, "not_a_word", f"{key} is a string.")
            return ""
        return value

    def layer_list(self, key: str, layers: int) -> list[int] | None:
        """Return a list of layers, counted from 0; None where it is not there."""
        value = self._body.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(each) is int for each in value):
            self.fault(key, "not_layers", f"{key} lists layers by number, from 0 on.")
            return []
        if not all(0 <= each < layers for each in value):
            self.conflict(key, "not_layers", f"{key} lists layers by number, from 0 to {layers - 1}.")
        return value

    def block(self, key: str) -> "ModelConfig":
        """Return the object under a key; one that lacks everything where it is not there."""
        value = self._body.get(key)
        if not isinstance(value, dict):
            if value is not None:
                self.fault(key, "not_an_object", f"{key} is an object.")
            value = {}
        return ModelConfig(value, f"{self._at}/{key}", self._faults)
