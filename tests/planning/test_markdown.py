"""The plan as a page."""

import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from service.planning.markdown import escaped, fenced, markdown
from tests.planning.examples import HOSTILE, SMALL, planned
from tests.sizing.scenarios import ARTICLE


class _Text(HTMLParser):
    """Collects the tags of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def _rendered(page: str) -> _Text:
    read = _Text()
    read.feed(MarkdownIt("commonmark").enable("table").render(page))
    return read


@pytest.mark.parametrize("nodes", [None, 16])
def test_it_holds_every_command_figure_and_note(nodes: int | None) -> None:
    plan = planned(ARTICLE, nodes=nodes, storage_label="pfs-a")
    page = markdown(plan)
    for test in plan.tests:
        assert f"## {test.title}" in page
        for command in (*test.commands, test.post):
            assert f"\n{command.line}\n" in page
        for line in (*(test.calls or []), *(test.document_needs or []), *test.notes):
            assert line in page
        for proof in test.proofs:
            assert f"| `{proof.target_id}` | " in page
            assert proof.sentence in page
    for each in plan.unproven:
        assert f"- `{each.target_id}`, `{each.best}` at best: {each.reason}" in page
    assert ("cannot show to be met" in page) is (nodes is not None)


def test_names_from_outside_are_text_and_nothing_else() -> None:
    tags = _rendered(markdown(planned(SMALL, name="plain", storage_label="plain", directory="/plain"))).tags
    hostile = f"{HOSTILE} ``` <script>x</script> ![a](b) http://a.b | *x* ~~~ # h"
    page = _rendered(markdown(planned(SMALL, name=hostile, storage_label=hostile, directory=f"/{hostile}")))
    assert page.tags == tags
    assert f"Test plan: {hostile}\n" in page.text


@pytest.mark.parametrize("text", ["a\nb", "a\r\n# b", "\u2028- x"])
def test_a_name_with_line_ends_stays_on_its_line(text: str) -> None:
    assert re.search(r"[\r\n\u2028]", escaped(text)) is None


@pytest.mark.parametrize(("line", "fence"), [("a", "```"), ("a ``` b", "````"), ("`````", "``````")])
def test_code_is_fenced_by_more_backticks_than_it_holds(line: str, fence: str) -> None:
    assert list(fenced("sh", [line])) == [f"{fence}sh", line, fence]
