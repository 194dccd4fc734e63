"""Text that is not to be shown."""

from __future__ import annotations

import copy
import json
import pickle

from pytest_mst.proxy.secret_text import SecretText


def test_a_copy_is_the_text_and_is_as_hidden_also_in_another_process() -> None:
    text = SecretText("tok-3f9a", shown="[token]")
    for made in (copy.copy(text), copy.deepcopy([text])[0], pickle.loads(pickle.dumps(text))):
        assert made == "tok-3f9a"
        assert repr(made) == repr(text) == "'[token]'"


def test_it_is_whole_where_it_is_used() -> None:
    text = SecretText("tok-3f9a", shown="[token]")
    assert f"{text}" == str(text) == json.loads(json.dumps(text)) == "tok-3f9a"
    assert text.encode() == b"tok-3f9a"
