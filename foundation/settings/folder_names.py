"""Names of scenarios, sweeps and recipes, by which the folders of their records are called."""

import re
from typing import Annotated

from pydantic import AfterValidator

from fabrictune.foundation.errors import Mistake, quote
from fabrictune.foundation.settings.binding import refuse

_FOLDER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
ALLOWED = "1 to 100 of the characters A-Z, a-z, 0-9, '_', '.' and '-', the first no '.' or '-'"


def _folder_name(text: str) -> str:
    if not _FOLDER_NAME.fullmatch(text):
        refuse("mistake", "", mistake=Mistake(where="", found=f"the name {quote(text)}", allowed=ALLOWED))
    return text


FolderName = Annotated[str, AfterValidator(_folder_name)]
