"""The pages of a folder of sessions: each has a place of its own."""

from pathlib import Path

from cli.viewer import books
from handrail.cli.main import main
from handrail.cli.viewer.folders import page_names


def test_a_page_is_called_as_its_session() -> None:
    assert page_names(["a.jsonl", "deep/b.session.jsonl"]) == ["a.html", "deep/b.session.html"]


def test_a_name_that_is_no_utf_8_has_a_page_that_a_link_can_name() -> None:
    assert page_names(["\udcff.jsonl", "\udcfe.jsonl"]) == ["\ufffd.html", "\ufffd.jsonl.html"]


def test_no_page_is_where_another_or_the_list_or_a_folder_is() -> None:
    names = [
        "index.jsonl",
        "index.jsonl.jsonl",
        "Index.jsonl",
        "a.jsonl",
        "A.jsonl",
        "a.html/b.jsonl",
        "index.html/c.jsonl",
    ]
    places = [place.casefold() for place in page_names(names)]
    assert len({*places, "index.html"}) == len(names) + 1
    assert not [place for place in places for other in ["index.html", *places] if place.startswith(f"{other}/")]


def test_a_folder_of_names_that_clash_is_viewed_whole(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    for name in ("index", "index.jsonl", "a", "a.html/b", "index.html/c"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        books.shop(folder / f"{name}.jsonl")
    assert main(["view", str(folder), "-o", str(out)]) == 0
    assert len([page for page in out.rglob("*.html") if page.is_file()]) == 6
